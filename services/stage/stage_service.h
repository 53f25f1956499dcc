// StageServiceAdapter: StageService over StageRuntime. Parses, posts, replies; holds no state.
// Ownership: borrows the runtime.  Threads: gRPC callbacks; answers come from the executor thread.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "stage/stage_runtime.h"
#include "stagecoach/v1/stage.grpc.pb.h"

namespace stagecoach {

class StageServiceAdapter final : public v1::StageService::CallbackService {
 public:
  explicit StageServiceAdapter(StageRuntime* runtime) : runtime_(runtime) {}

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

 private:
  StageRuntime* const runtime_;
};

// Bytes by kind as the wire and the plan have them; workspace counts as activations' neighbour and
// is left out.
StageMemory ToStageMemory(const std::array<int64_t, kMemoryKinds>& bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_SERVICE_H_
