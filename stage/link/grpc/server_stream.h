// ServerStream: the accepting end. It reads the hello, waits in the connector until its boundary is
// accepted, and then belongs to that boundary's core.
// Ownership: keeps itself alive until OnDone. Borrows the call context, which gRPC keeps until
//            OnDone.
// Threads:   as LinkStream; reactions on gRPC's threads. The mutex guards the change of owner and
//            is held across nothing but the non-blocking cancel.
#ifndef STAGECOACH_STAGE_LINK_GRPC_SERVER_STREAM_H_
#define STAGECOACH_STAGE_LINK_GRPC_SERVER_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <mutex>

#include "stage/link/grpc/link_core.h"

namespace stagecoach {

class ServerStream final : public LinkStream,
                           public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Where a stream goes with its hello, and the news that it ended while waiting.
  class Waiting {
   public:
    virtual ~Waiting() = default;
    virtual void OnHello(std::shared_ptr<ServerStream> stream, const LinkHello& hello) = 0;
    virtual void OnEndedWhileWaiting(ServerStream* stream) = 0;
  };

  ServerStream(grpc::CallbackServerContext* context, std::shared_ptr<Waiting> waiting);
  static ServerStream* Start(std::shared_ptr<ServerStream> self);

  void Bind(std::shared_ptr<LinkCore> core, const LinkHello& hello);
  void Refuse(const absl::Status& reason);

  void Write(const grpc::ByteBuffer* buffer) override { StartWrite(buffer); }
  void End(const absl::Status& reason) override;
  void Cancel() override;
  bool is_client() const override { return false; }

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  std::shared_ptr<LinkCore> core();
  void OnFirstMessage();

  const std::shared_ptr<Waiting> waiting_;
  grpc::ByteBuffer read_buffer_;
  std::mutex mutex_;                      // guards what follows
  grpc::CallbackServerContext* context_;  // null after OnDone
  std::shared_ptr<LinkCore> core_;
  bool finished_ = false;
  bool cancelled_ = false;
  std::shared_ptr<ServerStream> self_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_SERVER_STREAM_H_
