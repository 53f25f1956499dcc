// GrpcLinkConnector: links over gRPC, one bidirectional stream per boundary and generation. The
// upstream stage dials, the downstream one serves LinkService.
// Ownership: owns the service and one housekeeping thread for deadlines; borrows the loop that
//            Serve gave it, or owns one if it dials without. Outlives its links.
// Threads:   thread-safe; Serve comes before Dial and Accept. Shutdown before the gRPC server's;
//            the server is shut down before this object is destroyed.
// Errors:    links close with DEADLINE_EXCEEDED if nobody answered within connect_deadline_seconds;
//            ABORTED if the stage has accepted a newer incarnation of the job; ALREADY_EXISTS if
//            the boundary has a stream; UNAVAILABLE when the stream breaks, when too many streams
//            wait, or when the peer is not the neighbour; then with the message of Options::may_be.
// See: docs/formats.md, "Link frames".
#ifndef STAGECOACH_STAGE_LINK_GRPC_GRPC_LINK_CONNECTOR_H_
#define STAGECOACH_STAGE_LINK_GRPC_GRPC_LINK_CONNECTOR_H_

#include <functional>
#include <memory>
#include <string>

#include "stage/link/grpc/link_core.h"
#include "stage/link/link.h"

namespace grpc {
class AuthContext;
class ChannelCredentials;
class Service;
}  // namespace grpc

namespace stagecoach {

class RpcLoop;

// What a message of a link may have beyond LinkOptions::chunk_bytes: frame headers, control
// messages. A receiver must accept messages of the sum.
inline constexpr int kLinkMessageSlackBytes = 64 << 10;

class GrpcLinkConnector final : public LinkConnector {
 public:
  struct Options {
    LinkOptions link;
    double connect_deadline_seconds = 20;  // also for a stream that Accept has not taken yet
    double hello_deadline_seconds = 10;    // of a stream that says nothing
    int keepalive_time_ms = 1000;
    int keepalive_timeout_ms = 1000;
    std::shared_ptr<grpc::ChannelCredentials> credentials;  // null: insecure
    LinkObserver on_transfer;                               // may be empty
    ProgressCounter* progress = nullptr;  // ticks with every chunk that arrives; may be null
    // Whether the peer may be the stage of that name, judged by its certificate. Pure. Empty: a
    // peer that may call at all may be any stage.
    std::function<absl::Status(const grpc::AuthContext& peer, const std::string& stage)> may_be;
  };

  explicit GrpcLinkConnector(const Options& options);
  ~GrpcLinkConnector() override;

  // Register it with a server. Once the server has started, call Serve with the loop that polls the
  // server's queue.
  grpc::Service* service();
  void Serve(RpcLoop* loop);
  std::unique_ptr<Link> Dial(const std::string& address, const BoundaryId& boundary,
                             Allocator& allocator, int64_t most_message_bytes) override;
  std::unique_ptr<Link> Accept(const BoundaryId& boundary, const std::string& upstream_name,
                               Allocator& allocator, int64_t most_message_bytes) override;

  // Closes every link, refuses waiting and new streams, and waits until the dialled streams are
  // gone.
  void Shutdown();

  const LinkTotals& upstream_totals() const;    // with the neighbour that dials us
  const LinkTotals& downstream_totals() const;  // with the neighbour that we dial

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_GRPC_LINK_CONNECTOR_H_
