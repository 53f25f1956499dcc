// ServerStream: the accepting end. It reads the hello, waits in the connector until its boundary is
// accepted, and then belongs to that boundary's core.
// Ownership: owns its call. Its operations, its Waiting and its core keep it until the call is
//            over.
// Threads:   as LinkStream; reactions on the loop's thread. The mutex guards the call's state and
//            the change of owner; neither core nor connector is called under it.
#ifndef STAGECOACH_STAGE_LINK_GRPC_SERVER_STREAM_H_
#define STAGECOACH_STAGE_LINK_GRPC_SERVER_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "stage/link/grpc/link_core.h"
#include "stage/link/grpc/rpc_loop.h"
#include "stagecoach/v1/link.grpc.pb.h"

namespace stagecoach {

class ServerStream final : public LinkStream, public std::enable_shared_from_this<ServerStream> {
 public:
  using Service = v1::LinkService::WithRawMethod_Exchange<v1::LinkService::Service>;

  // Receives a stream when it is opened, when its hello is there, and when it ended while waiting.
  class Waiting {
   public:
    virtual ~Waiting() = default;
    virtual void OnOpened(std::shared_ptr<ServerStream> stream) = 0;  // it has said nothing yet
    virtual void OnHello(std::shared_ptr<ServerStream> stream, const LinkHello& hello) = 0;
    virtual void OnEndedWhileWaiting(ServerStream* stream) = 0;
  };

  // Takes every call of the service from now on, until the server shuts down.
  static void Listen(Service* service, RpcLoop* loop, std::shared_ptr<Waiting> waiting);
  ServerStream(Service* service, RpcLoop* loop, std::shared_ptr<Waiting> waiting);

  // The peer's address without its port.
  std::string PeerHost() const;
  // The peer's identity as far as it is known: the host, and the names in the certificate. Not for
  // people.
  std::string PeerSource() const;
  // The peer's certificate, from when it connected.
  std::shared_ptr<const grpc::AuthContext> PeerCertificate() const {
    return context_.auth_context();
  }
  void Bind(std::shared_ptr<LinkCore> core, const LinkHello& hello);
  void Refuse(const absl::Status& reason) { End(reason); }

  void Write(const grpc::ByteBuffer* buffer) override;
  void End(const absl::Status& reason) override;
  void Cancel() override;
  bool is_client() const override { return false; }

 private:
  using This = RpcOperation<ServerStream>;
  void OnAccepted(bool ok);
  void OnReadDone(bool ok);
  void OnWriteDone(bool ok);
  void OnFinished(bool) { Release(); }
  void OnOver(bool);  // the call ended, with or without an error

  std::shared_ptr<LinkCore> core();
  void ReadFirst(bool ok);
  void ReadLocked();
  // An operation is over and handled. The last one releases the core.
  void Release();

  std::optional<RpcLoop::Use> use_;  // until the call is over
  Service* const service_;
  const std::shared_ptr<Waiting> waiting_;
  grpc::ServerContext context_;
  grpc::ByteBuffer read_buffer_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> call_{&context_};
  This accept_{&ServerStream::OnAccepted}, read_{&ServerStream::OnReadDone},
      write_{&ServerStream::OnWriteDone}, finish_{&ServerStream::OnFinished},
      over_{&ServerStream::OnOver};

  std::mutex mutex_;  // guards the members below
  int under_way_ = 0;
  bool gone_ = false;
  std::shared_ptr<LinkCore> core_;
  bool finished_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_SERVER_STREAM_H_
