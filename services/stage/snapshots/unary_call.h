// Unary calls of an asynchronous service on an RpcLoop, answered at once or later. Errors are
// marked as the server's own (own_error.h), and if messages carry a checksum, it is checked and set
// (message_checksum.h).
#ifndef STAGECOACH_SERVICES_STAGE_SNAPSHOTS_UNARY_CALL_H_
#define STAGECOACH_SERVICES_STAGE_SNAPSHOTS_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/grpc/own_error.h"
#include "stage/link/grpc/rpc_loop.h"

namespace stagecoach {

// Ends the call with the response as it is then. Call it exactly once, on any thread; request and
// response live until then.
using Answer = std::function<void(const grpc::Status&)>;

// One call of a method, from the request to gRPC for it until its answer has been sent.
// Ownership: kept by its operations and by the handler's Answer.
// Threads:   the handler runs on the loop's thread and must not block.
template <typename Service, typename Base, typename Request, typename Response>
class UnaryCall final
    : public std::enable_shared_from_this<UnaryCall<Service, Base, Request, Response>> {
 public:
  // RequestX of the generated class, which derives from one class for each method.
  using Ask = void (Base::*)(grpc::ServerContext*, Request*,
                             grpc::ServerAsyncResponseWriter<Response>*, grpc::CompletionQueue*,
                             grpc::ServerCompletionQueue*, void*);
  using Handler = std::function<void(const Request&, Response*, Answer)>;

  UnaryCall(RpcLoop* loop, Service* service, Ask ask, Handler handler)
      : use_(loop), service_(service), ask_(ask), handler_(std::move(handler)) {}

  // Takes one call, and once it has come listens for the next.
  static void Listen(RpcLoop* loop, Service* service, Ask ask, Handler handler) {
    const auto call = std::make_shared<UnaryCall>(loop, service, ask, std::move(handler));
    (service->*ask)(&call->context_, &call->request_, &call->writer_, loop->queue(),
                    loop->server_queue(), call->accept_.Start(call));
  }

 private:
  void OnAccepted(bool ok) {
    if (!ok) return;  // the server shuts down
    Listen(use_.loop(), service_, ask_, handler_);
    if (const absl::Status damaged = CheckChecksum(&request_); !damaged.ok()) {
      return Finish(ToGrpc(damaged));
    }
    handler_(request_, &response_, [self = this->shared_from_this()](const grpc::Status& status) {
      self->Finish(status);
    });
  }

  void Finish(const grpc::Status& status) {
    void* const tag = finish_.Start(this->shared_from_this());
    if (status.ok()) {
      SetChecksum(&response_);
      writer_.Finish(response_, status, tag);
    } else {
      MarkOwnError(&context_);
      writer_.FinishWithError(status, tag);
    }
  }

  void OnFinished(bool) {}  // sent, or the caller has gone: both end the call

  const RpcLoop::Use use_;
  Service* const service_;
  const Ask ask_;
  const Handler handler_;
  grpc::ServerContext context_;
  Request request_;
  Response response_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
  RpcOperation<UnaryCall> accept_{&UnaryCall::OnAccepted}, finish_{&UnaryCall::OnFinished};
};

// Serves every call of one method until the server shuts down.
template <typename Service, typename Base, typename Request, typename Response>
void ServeUnary(
    RpcLoop* loop, Service* service,
    void (Base::*ask)(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Response>*,
                      grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
    std::type_identity_t<std::function<void(const Request&, Response*, Answer)>> handler) {
  UnaryCall<Service, Base, Request, Response>::Listen(loop, service, ask, std::move(handler));
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_SNAPSHOTS_UNARY_CALL_H_
