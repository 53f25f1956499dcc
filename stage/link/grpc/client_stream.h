// ClientStream: the dialling end of a boundary's stream.
// Ownership: owns its channel and call context. Both may only be destroyed off gRPC's threads, so
//            OnDone hands the whole object to `bury`, whose owner lets go of it on a thread of its
//            own.
// Threads:   as LinkStream; reactions on gRPC's threads.
// A hold keeps the stream alive for writes from outside reactions; End releases it, once.
#ifndef STAGECOACH_STAGE_LINK_GRPC_CLIENT_STREAM_H_
#define STAGECOACH_STAGE_LINK_GRPC_CLIENT_STREAM_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>

#include "stage/link/grpc/link_core.h"

namespace stagecoach {

class ClientStream final : public LinkStream,
                           public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using Bury = std::function<void(std::shared_ptr<ClientStream>)>;

  ClientStream(std::shared_ptr<grpc::Channel> channel, std::shared_ptr<LinkCore> core, Bury bury);
  // Attaches to the core and starts the call. self: keeps the object until OnDone.
  static void Start(std::shared_ptr<ClientStream> self);

  void Write(const grpc::ByteBuffer* buffer) override { StartWrite(buffer); }
  void End(const absl::Status&) override { RemoveHold(); }
  void Cancel() override { context_.TryCancel(); }
  bool is_client() const override { return true; }

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override { core_->OnWriteDone(ok); }
  void OnDone(const grpc::Status& status) override;

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer read_buffer_;
  const std::shared_ptr<LinkCore> core_;
  const Bury bury_;
  std::shared_ptr<ClientStream> self_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_CLIENT_STREAM_H_
