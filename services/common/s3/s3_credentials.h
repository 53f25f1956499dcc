// S3CredentialSource: the credentials that sign requests to S3, from where AWS's own tools have
// them, in this order:
//   environment  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   file         AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials, its part AWS_PROFILE or default
//   role         of the instance, unless AWS_EC2_METADATA_DISABLED is "true"
// They are read again shortly before they expire, and after Forget.
// Ownership: borrows the transfer and the clock.
// Threads:   thread-safe; a call may wait for the instance's service.
// Errors:    FAILED_PRECONDITION: nowhere any, with the places; a file that others may read.
//            INVALID_ARGUMENT: a file or variable that is incomplete. UNAVAILABLE: the role's are
//            not to be had now.
#ifndef STAGECOACH_SERVICES_COMMON_S3_S3_CREDENTIALS_H_
#define STAGECOACH_SERVICES_COMMON_S3_S3_CREDENTIALS_H_

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "services/common/s3/http_transfer.h"
#include "services/common/s3/sigv4.h"

namespace stagecoach {

class S3CredentialSource {
 public:
  // The value of a variable; empty if it is not set.
  using Environment = std::function<std::string(const std::string& name)>;
  static std::string OfProcess(const std::string& name);
  static constexpr int64_t kEarlySeconds = 300;  // a role's new ones are there by then

  S3CredentialSource(HttpTransfer* transfer, const Clock* clock,
                     Environment environment = &S3CredentialSource::OfProcess)
      : transfer_(*transfer), clock_(*clock), environment_(std::move(environment)) {}

  absl::StatusOr<S3Credentials> Get();
  void Forget();  // the server did not take them

 private:
  absl::StatusOr<S3Credentials> Read();
  absl::StatusOr<std::optional<S3Credentials>> OfFile(const std::string& path,
                                                      const std::string& profile);

  HttpTransfer& transfer_;
  const Clock& clock_;
  const Environment environment_;
  std::mutex mutex_;  // guards what follows
  std::optional<S3Credentials> kept_;
};

// The server and region of requests, as AWS's own tools have them: `given`, else of AWS_ENDPOINT_URL_S3
// or AWS_ENDPOINT_URL (empty: AWS); of AWS_REGION or AWS_DEFAULT_REGION.
std::string EndpointOfProcess(const std::string& given);
std::string RegionOfProcess();

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_S3_CREDENTIALS_H_
