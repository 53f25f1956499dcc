// StageServiceAdapter: StageService over StageRuntime. Parses, posts, replies, and logs the events
// of a job here.
// Ownership: borrows its parts.
// Threads:   calls on the loop's thread; answers come from the executor thread.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <string>

#include "base/threads/clock.h"
#include "services/common/data_sets/data_cache.h"
#include "services/common/observe/log_ring.h"
#include "services/common/store/remote_store_files.h"
#include "services/stage/snapshots/unary_call.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/watch/trace_ring.h"
#include "stagecoach/v1/stage.grpc.pb.h"

namespace stagecoach {

class StageServiceAdapter final {
 public:
  struct Parts {
    StageRuntime* runtime = nullptr;
    // Is told of the grants that come with commands; null: nobody is.
    RemoteStoreFiles* store = nullptr;
    DataCache* data_sets = nullptr;  // likewise, and of the sets that a load names
    const TraceRing* trace = nullptr;
    const LogRing* logs = nullptr;
    const Clock* clock = nullptr;
  };
  explicit StageServiceAdapter(const Parts& parts) : parts_(parts) {}

  // Register it with a server. Once that has started, serve it on the loop that polls the server's
  // queue.
  grpc::Service* service() { return &service_; }
  void Serve(RpcLoop* loop);

  // The registered name, known once the server listens; empty until then.
  void set_name(const std::string& name);

 private:
  void LoadCell(const v1::LoadCellRequest& request, v1::LoadCellResponse* response, Answer answer);
  void Run(const v1::RunRequest& request, v1::RunResponse* response, Answer answer);
  void Abort(const v1::AbortRequest& request, v1::AbortResponse* response, Answer answer);
  void WriteShard(const v1::WriteShardRequest& request, v1::WriteShardResponse* response,
                  Answer answer);
  void FindSnapshots(const v1::FindSnapshotsRequest& request, v1::FindSnapshotsResponse* response,
                     Answer answer);
  void ReleaseCell(const v1::ReleaseCellRequest& request, v1::ReleaseCellResponse* response,
                   Answer answer);
  void ProfileModel(const v1::ProfileModelRequest& request, v1::ProfileModelResponse* response,
                    Answer answer);
  void GetStatus(const v1::GetStatusRequest& request, v1::GetStatusResponse* response,
                 Answer answer);
  void GetStageTrace(const v1::GetStageTraceRequest& request, v1::GetStageTraceResponse* response,
                     Answer answer);
  void GetStageLogs(const v1::GetStageLogsRequest& request, v1::GetStageLogsResponse* response,
                    Answer answer);

  void Admit(const std::string& folder, const std::string& grant);
  void Admit(const google::protobuf::RepeatedPtrField<v1::DataGrant>& grants);
  std::string name() const;
  absl::Status CheckMeantFor(const std::string& stage) const;  // empty: any

  const Parts parts_;
  v1::StageService::AsyncService service_;
  mutable std::mutex mutex_;  // guards name_
  std::string name_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_
