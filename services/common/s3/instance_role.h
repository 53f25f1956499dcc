// Credentials of the machine's role, from the instance metadata service of EC2 (version 2).
// Threads: any; waits some seconds at most.
// Errors:  NOT_FOUND: this machine has no such service or no role. UNAVAILABLE: no answer that can
//          be read.
#ifndef STAGECOACH_SERVICES_COMMON_S3_INSTANCE_ROLE_H_
#define STAGECOACH_SERVICES_COMMON_S3_INSTANCE_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/common/s3/http_transfer.h"
#include "services/common/s3/sigv4.h"

namespace stagecoach {

// service: "http://169.254.169.254".
absl::StatusOr<S3Credentials> FetchInstanceRole(HttpTransfer& transfer, const std::string& service);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_INSTANCE_ROLE_H_
