// DataBuckets: buckets that are not the cluster's, which jobs may read beneath the prefixes of
// --data-buckets. The coordinator alone has credentials.
// Ownership: owns its connections.
// Threads:   thread-safe; calls wait for the server.
// Units:     bytes, seconds.
// Errors:    as S3Client, naming the object, --data-buckets and the remedy. PERMISSION_DENIED: beneath
//            no prefix. FAILED_PRECONDITION: there are no prefixes. INVALID_ARGUMENT: a key that is no
//            path of a data set, or more objects than asked for.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_BUCKETS_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "plan/data/bucket_path.h"
#include "services/common/s3/s3_client.h"

namespace stagecoach {

class DataBuckets {
 public:
  // A caller waits for the answer, and repeats its call.
  static constexpr double kGiveUpSeconds = 5;

  struct Options {
    std::vector<std::string> prefixes;  // "s3://BUCKET/PREFIX", or several with ',' between
    std::string endpoint;               // as EndpointOfProcess has it
    S3CredentialSource::Environment environment = &S3CredentialSource::OfProcess;
  };
  // INVALID_ARGUMENT naming flag, value and remedy.
  static absl::StatusOr<std::unique_ptr<DataBuckets>> Open(const Options& options);
  void Shutdown() { transfer_.Shutdown(); }  // calls under way end soon

  struct Object {
    BucketPath path;
    int64_t bytes = 0;
    std::string etag;  // without quotes
  };
  absl::Status CheckAllowed(const BucketPath& path) const;
  // NOT_FOUND: no such object.
  absl::StatusOr<Object> Look(const BucketPath& path);
  // Objects below the folder, without marks of folders and names that begin with a dot.
  // flat: not in its folders. most: objects and folders, hidden ones too.
  absl::StatusOr<std::vector<Object>> List(const BucketPath& folder, bool flat, size_t most);
  absl::StatusOr<bool> IsFolder(const BucketPath& path);
  absl::StatusOr<std::string> PresignRead(const BucketPath& path, int64_t seconds);

 private:
  explicit DataBuckets(const Options& options)
      : credentials_(&transfer_, SystemClock::Get(), options.environment) {}
  absl::StatusOr<S3Client*> ClientOf(const BucketPath& path);

  HttpTransfer transfer_;
  S3CredentialSource credentials_;
  std::vector<BucketPath> prefixes_;
  std::map<std::string, std::unique_ptr<S3Client>> clients_;  // by bucket
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_BUCKETS_H_
