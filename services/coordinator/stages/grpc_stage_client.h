// GrpcStageClient: StageClient and StageObserver over gRPC's callback API; one channel per stage
// and address. A channel that met a dead process answers for up to a second without trying. So a
// process that registers gets a channel of its own. If a stage refused the coordinator, the next
// command goes over a new channel, with the certificate of that moment.
// Ownership: borrows the grants; owns channels and calls in flight; the destructor cancels and waits for them.
// Threads:   thread-safe; `done` runs on a gRPC thread.
// Errors:    every call has a deadline. If an error is not the stage's own, it is UNAVAILABLE
//            (own_error.h). A broken connection is UNAVAILABLE at once, never retried here: the job
//            manager decides.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STAGES_GRPC_STAGE_CLIENT_H_
#define STAGECOACH_SERVICES_COORDINATOR_STAGES_GRPC_STAGE_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "coordinator/loop/stage_client.h"
#include "services/coordinator/stages/data_grants.h"
#include "services/coordinator/stages/stage_observer.h"
#include "services/coordinator/store/object_grants.h"
#include "stagecoach/v1/stage.grpc.pb.h"

namespace stagecoach {

class GrpcStageClient final : public StageClient, public StageObserver {
 public:
  // Credentials for a channel to the stage of that name and to nobody else.
  using Credentials =
      std::function<std::shared_ptr<grpc::ChannelCredentials>(const std::string& stage_name)>;

  // grants: for the folders of commands that are the store's, and for data sets; null: none are.
  // unproven: as of DataGrants.
  explicit GrpcStageClient(Credentials credentials, const ObjectGrants* grants = nullptr,
                           bool unproven = false);
  ~GrpcStageClient() override;

  void Load(const StagePeer& stage, const LoadCommand& command, double deadline_seconds,
            std::function<void(absl::StatusOr<LoadResult>)> done) override;
  void Run(const StagePeer& stage, const RunCommand& command, double deadline_seconds,
           std::function<void(absl::StatusOr<StepReport>)> done) override;
  void WriteShard(const StagePeer& stage, const WriteShardCommand& command, double deadline_seconds,
                  std::function<void(absl::StatusOr<ShardInfo>)> done) override;
  void Profile(const StagePeer& stage, const ProfileCommand& command, double deadline_seconds,
               std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) override;
  void FindSnapshots(const StagePeer& stage, const std::string& job, const std::string& key,
                     double deadline_seconds,
                     std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) override;
  void Abort(const StagePeer& stage, const Fence& fence, const std::string& reason) override;
  void Release(const StagePeer& stage, const Fence& fence) override;
  void Reconnect(const StagePeer& stage) override;

  void GetStatus(const StagePeer& stage, double deadline_seconds,
                 std::function<void(absl::StatusOr<v1::GetStatusResponse>)> done) override;
  void GetTrace(const StagePeer& stage, const v1::GetStageTraceRequest& request,
                double deadline_seconds,
                std::function<void(absl::StatusOr<v1::GetStageTraceResponse>)> done) override;
  void GetLogs(const StagePeer& stage, const v1::GetStageLogsRequest& request,
               double deadline_seconds,
               std::function<void(absl::StatusOr<v1::GetStageLogsResponse>)> done) override;

 private:
  struct Peer {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::StageService::Stub> stub;
  };
  using Async = v1::StageService::StubInterface::async_interface;
  template <typename Request, typename Response>
  using Method = void (Async::*)(grpc::ClientContext*, const Request*, Response*,
                                 std::function<void(grpc::Status)>);

  std::string GrantFor(const std::string& folder, ObjectGrants::Use use) const;
  std::shared_ptr<Peer> PeerFor(const StagePeer& stage);
  // Made once for all stages of a load: thousands of layers take long on the caller's thread.
  std::shared_ptr<const v1::Network> MessageOf(const std::shared_ptr<const Network>& network);
  void NoteRefused(const StagePeer& stage);
  bool WasRefused(const StagePeer& stage);
  bool Started(grpc::ClientContext* context);  // false: the destructor runs
  void Ended(std::unique_ptr<grpc::ClientContext> context);
  template <typename Request, typename Response>
  void Start(const StagePeer& stage, Request request, double deadline_seconds,
             Method<Request, Response> method, std::function<void(absl::StatusOr<Response>)> done);
  // The same from the job loop. An observer may ask on one of gRPC's threads, which must not
  // release a channel.
  template <typename Request, typename Response>
  void Command(const StagePeer& stage, Request request, double deadline_seconds,
               Method<Request, Response> method,
               std::function<void(absl::StatusOr<Response>)> done);

  const Credentials credentials_;
  const ObjectGrants* const grants_;
  DataGrants data_grants_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable idle_;
  std::map<StagePeer, std::shared_ptr<Peer>> peers_;
  std::vector<std::shared_ptr<grpc::Channel>> retired_;  // perhaps with calls under way
  std::set<StagePeer> refused_;                          // peers that need a new connection
  std::set<grpc::ClientContext*> cancellable_;
  std::weak_ptr<const Network> written_;  // last network written, and its message
  std::shared_ptr<const v1::Network> message_;
  int calls_ = 0;  // calls whose context still exists
  bool closing_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STAGES_GRPC_STAGE_CLIENT_H_
