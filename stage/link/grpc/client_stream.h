// ClientStream: the dialling end of a boundary's stream.
// Ownership: owns its channel and call context. Its operations and its core keep it until the call
//            is over and `gone` was called.
// Threads:   as LinkStream; reactions on the loop's thread. The mutex guards the call's state; no
//            core is called under it.
#ifndef STAGECOACH_STAGE_LINK_GRPC_CLIENT_STREAM_H_
#define STAGECOACH_STAGE_LINK_GRPC_CLIENT_STREAM_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "stage/link/grpc/link_core.h"
#include "stage/link/grpc/rpc_loop.h"

namespace stagecoach {

class ClientStream final : public LinkStream, public std::enable_shared_from_this<ClientStream> {
 public:
  ClientStream(RpcLoop* loop, std::shared_ptr<grpc::Channel> channel,
               std::shared_ptr<LinkCore> core, std::function<void()> gone);
  // Starts the call and attaches to the core.
  void Start();

  void Write(const grpc::ByteBuffer* buffer) override;
  void End(const absl::Status&) override;
  void Cancel() override { context_.TryCancel(); }
  bool is_client() const override { return true; }

 private:
  using This = RpcOperation<ClientStream>;
  void OnStarted(bool ok);
  void OnReadDone(bool ok);
  void OnWriteDone(bool ok) { core_->OnWriteDone(ok); }
  void OnFinished(bool ok);

  void ReadLocked();
  void WriteLocked(const grpc::ByteBuffer* buffer);
  void FinishIfDueLocked();

  std::optional<RpcLoop::Use> use_;  // until the call is over
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  const std::shared_ptr<LinkCore> core_;
  const std::function<void()> gone_;
  grpc::ByteBuffer read_buffer_;
  grpc::Status status_;
  This started_{&ClientStream::OnStarted}, read_{&ClientStream::OnReadDone},
      write_{&ClientStream::OnWriteDone}, finish_{&ClientStream::OnFinished};

  std::mutex mutex_;  // guards the members below
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool open_ = false;                          // reads and writes may start
  const grpc::ByteBuffer* waiting_ = nullptr;  // a write that was requested before that
  bool reading_ = false;
  bool end_asked_ = false, finishing_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_CLIENT_STREAM_H_
