// GrpcLinkConnector: links over gRPC, one bidirectional stream per boundary and generation. The
// upstream stage dials, the downstream one serves LinkService.
// Ownership: owns the service and one housekeeping thread for deadlines; borrows the loop that
//            Serve gave it, or owns one if it dials without. Outlives its links.
// Threads:   thread-safe; Serve comes before Dial and Accept. Shutdown before the gRPC server's;
//            the server is shut down before this object is destroyed.
// Errors:    links close with DEADLINE_EXCEEDED if nobody answered within connect_deadline_seconds;
//            ABORTED if the stage has accepted a newer incarnation of the job; ALREADY_EXISTS if
//            the boundary has a stream; UNAVAILABLE when the stream breaks, where too many wait,
//            and for another stage than the neighbour, with what Options::may_be says of it.
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

// Largest message that a link sends: a server must receive this much and frame headers.
inline constexpr int kLinkMessageSlackBytes = 64 << 10;

class GrpcLinkConnector final : public LinkConnector {
 public:
  struct Options {
    LinkOptions link;
    double connect_deadline_seconds = 20;  // also of a stream whose end nobody has taken yet
    double hello_deadline_seconds = 10;    // of a stream that says nothing
    int keepalive_time_ms = 1000;
    int keepalive_timeout_ms = 1000;
    std::shared_ptr<grpc::ChannelCredentials> credentials;  // null: insecure
    LinkObserver on_transfer;                               // may be empty
    ProgressCounter* progress = nullptr;  // ticks with every chunk that arrives; may be null
    // Whether the peer may be the stage of that name, by what it showed when it connected. Pure.
    // Empty: whoever may call at all may be any.
    std::function<absl::Status(const grpc::AuthContext& peer, const std::string& stage)> may_be;
  };

  explicit GrpcLinkConnector(const Options& options);
  ~GrpcLinkConnector() override;

  // To be registered with a server, and served on the loop that polls for it once it has started.
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
