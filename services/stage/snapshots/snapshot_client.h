// SnapshotClient: SnapshotPeers over gRPC. A call is one message there and one back, on the one
// loop of a stage's gRPC. The caller waits, and links keep their thread. If a neighbour refuses the
// caller, the next call uses a new connection.
// Ownership: owns channels; borrows the loop from Serve to Shutdown, after which it refuses.
// Threads:   thread-safe, but for Serve, which comes first; not to be called on the loop's thread.
// Errors:    as SnapshotPeers; UNAVAILABLE before Serve, CANCELLED after Shutdown.
#ifndef STAGECOACH_SERVICES_STAGE_SNAPSHOTS_SNAPSHOT_CLIENT_H_
#define STAGECOACH_SERVICES_STAGE_SNAPSHOTS_SNAPSHOT_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "stage/link/grpc/rpc_loop.h"
#include "stage/snapshot/snapshot_peers.h"
#include "stagecoach/v1/snapshot.grpc.pb.h"

namespace stagecoach {

class SnapshotClient final : public SnapshotPeers {
 public:
  explicit SnapshotClient(std::shared_ptr<grpc::ChannelCredentials> credentials);

  void Serve(RpcLoop* loop);
  void Shutdown();  // cancels running calls

  absl::Status Put(const std::string& address, const SnapshotPart& part) override;
  absl::Status Get(const std::string& address, const SnapshotRange& range,
                   std::span<std::byte> target) override;

 private:
  struct Peer {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::SnapshotService::Stub> stub;
  };
  template <typename Response>
  class Call;
  std::shared_ptr<Peer> PeerForLocked(const std::string& address);
  // `start` makes the call's reader with the stub.
  template <typename Response, typename Start>
  absl::Status Ask(const std::string& address, Response* response, Start start);

  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::mutex mutex_;  // guards what follows
  RpcLoop* loop_ = nullptr;
  bool closed_ = false;
  std::map<std::string, std::shared_ptr<Peer>> peers_;
  std::set<grpc::ClientContext*> under_way_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_SNAPSHOTS_SNAPSHOT_CLIENT_H_
