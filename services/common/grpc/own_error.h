// The origin of an error: the server's own code, or anything between it and the caller, gRPC
// included. Both use the same codes. A connection that is reset in the middle of an answer is
// INTERNAL, a proxy's 403 is PERMISSION_DENIED. Some callers must know which it was, as the job
// loop before it ends a job. They call a server that marks its own errors in the trailing metadata.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_OWN_ERROR_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_OWN_ERROR_H_

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace stagecoach {

// Call it before the call is finished with an error.
void MarkOwnError(grpc::ServerContextBase* context);

bool IsOwnError(const grpc::ClientContext& context);  // of a call that has ended

// The status of a call that has ended. An error without the mark becomes UNAVAILABLE, with its code
// in the message, if gRPC makes that code itself. The other codes only come from servers (gRPC's
// list of status codes). So such an error of an older version is understood too.
absl::Status FromMarkingServer(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_OWN_ERROR_H_
