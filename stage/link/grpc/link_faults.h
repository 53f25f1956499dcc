// Errors of links as errors of their step: a link's fault is UNAVAILABLE or DATA_LOSS, and the step
// is repeated.
#ifndef STAGECOACH_STAGE_LINK_GRPC_LINK_FAULTS_H_
#define STAGECOACH_STAGE_LINK_GRPC_LINK_FAULTS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace stagecoach {

// An invalid message was changed on its way, or a broken stage sent it. The step can be repeated,
// whereas INVALID_ARGUMENT of a stage says that the job itself is wrong.
absl::Status AsLinksFault(const absl::Status& status);

// The fault of a stream that ended before the peer's hello, with `text` for people.
absl::Status RefusedLinksFault(const grpc::Status& status, const std::string& text);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_LINK_FAULTS_H_
