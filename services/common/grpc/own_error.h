// Who made an error: the server's own code, or gRPC and what lies between. Both use the same codes: a connection that is
// reset in the middle of an answer is INTERNAL, a proxy's 403 PERMISSION_DENIED. Who must know which it was, as the job
// loop must before it ends a job, asks a server that marks its own ones in the trailing metadata.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_OWN_ERROR_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_OWN_ERROR_H_

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace stagecoach {

// To be called before the call is finished with an error.
void MarkOwnError(grpc::ServerContextBase* context);

// Of a call that has ended. An error without the mark becomes UNAVAILABLE, with its code in the message, if its code is
// one that gRPC makes itself; the other codes only come from servers (gRPC's list of status codes), so one of an older
// version is understood too.
absl::Status FromMarkingServer(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_OWN_ERROR_H_
