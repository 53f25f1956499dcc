// StageServiceAdapter: StageService over StageRuntime. Parses, posts, replies, and logs what
// happens to a job here.
// Ownership: borrows what it is made of.
// Threads:   gRPC callbacks; answers come from the executor thread.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <string>

#include "base/clock.h"
#include "services/common/log_ring.h"
#include "stage/stage_runtime.h"
#include "stage/trace_ring.h"
#include "stagecoach/v1/stage.grpc.pb.h"

namespace stagecoach {

class StageServiceAdapter final : public v1::StageService::CallbackService {
 public:
  struct Parts {
    StageRuntime* runtime = nullptr;
    const TraceRing* trace = nullptr;
    const LogRing* logs = nullptr;
    const Clock* clock = nullptr;
  };
  explicit StageServiceAdapter(const Parts& parts) : parts_(parts) {}

  // The registered name, known once the server listens; empty until then.
  void set_name(const std::string& name);

  grpc::ServerUnaryReactor* LoadCell(grpc::CallbackServerContext* context,
                                     const v1::LoadCellRequest* request,
                                     v1::LoadCellResponse* response) override;
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, const v1::RunRequest* request,
                                v1::RunResponse* response) override;
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::AbortRequest* request,
                                  v1::AbortResponse* response) override;
  grpc::ServerUnaryReactor* WriteShard(grpc::CallbackServerContext* context,
                                       const v1::WriteShardRequest* request,
                                       v1::WriteShardResponse* response) override;
  grpc::ServerUnaryReactor* ReleaseCell(grpc::CallbackServerContext* context,
                                        const v1::ReleaseCellRequest* request,
                                        v1::ReleaseCellResponse* response) override;
  grpc::ServerUnaryReactor* ProfileModel(grpc::CallbackServerContext* context,
                                         const v1::ProfileModelRequest* request,
                                         v1::ProfileModelResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* GetStageTrace(grpc::CallbackServerContext* context,
                                          const v1::GetStageTraceRequest* request,
                                          v1::GetStageTraceResponse* response) override;
  grpc::ServerUnaryReactor* GetStageLogs(grpc::CallbackServerContext* context,
                                         const v1::GetStageLogsRequest* request,
                                         v1::GetStageLogsResponse* response) override;

 private:
  std::string name() const;

  const Parts parts_;
  mutable std::mutex mutex_;  // guards name_
  std::string name_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_
