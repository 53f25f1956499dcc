// S3Objects: the store's objects in a bucket. Their bytes go between callers and bucket, by URLs
// that are signed here; the coordinator alone has credentials.
// Ownership: borrows its parts.
// Threads:   thread-safe; calls wait for the server.
// Errors:    as S3Client, with the object's name. INVALID_ARGUMENT: no name of the store, or a field
//            out of its range. PERMISSION_DENIED: an object that callers do not write.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_S3_OBJECTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_S3_OBJECTS_H_

#include <cstdint>
#include <string>

#include "services/coordinator/store/s3_files.h"
#include "services/coordinator/store/set_parts.h"
#include "stagecoach/v1/store.pb.h"

namespace stagecoach {

class S3Objects {
 public:
  static constexpr int kMostParts = 10000;  // S3's own limit
  static constexpr int kMostUrls = 100;     // of one answer

  S3Objects(S3Files* files, S3Client* client) : files_(*files), client_(*client) {}

  // Before any other call: data sets are in the bucket too. Borrowed.
  void ServeDataSets(SetParts* sets) { sets_ = sets; }

  // Whether an object of this name is in the bucket; others are the coordinator's files.
  bool Has(const std::string& name) const;
  // Of a data set's part that is not complete: what its newest upload has.
  absl::Status Find(const std::string& name, v1::FindObjectResponse* response);
  absl::Status Remove(const std::string& name);  // its unfinished uploads too
  // seconds: how long the URLs are good for.
  absl::Status Locate(const v1::LocateObjectRequest& request, int64_t seconds,
                      v1::LocateObjectResponse* response);
  absl::Status Complete(const v1::CompleteObjectRequest& request);

 private:
  absl::StatusOr<std::string> KeyOf(const std::string& name);
  absl::StatusOr<std::string> WritableKey(const std::string& name);
  absl::Status FindUpload(const std::string& name, const std::string& key,
                          v1::FindObjectResponse* response);
  absl::Status LocateParts(const v1::LocateObjectRequest& request, const std::string& key,
                           int64_t seconds, v1::LocateObjectResponse* response);

  S3Files& files_;
  S3Client& client_;
  SetParts* sets_ = nullptr;  // null: data sets are the coordinator's files
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_S3_OBJECTS_H_
