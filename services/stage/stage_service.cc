#include "services/stage/stage_service.h"

#include <utility>

#include "services/common/convert_control.h"
#include "services/common/convert_spec.h"
#include "services/common/grpc_status.h"

namespace stagecoach {
namespace {

// The reply of a command whose result has a wire form.
template <typename Result, typename Response>
auto Reply(grpc::ServerUnaryReactor* reactor, Response* response) {
  return [reactor, response](absl::StatusOr<Result> result) {
    if (result.ok()) *response = ToProto(*result);
    reactor->Finish(ToGrpc(result.status()));
  };
}

}  // namespace

StageMemory ToStageMemory(const std::array<int64_t, kMemoryKinds>& bytes) {
  StageMemory memory;
  memory.parameters = bytes[static_cast<int>(MemoryKind::kParameters)];
  memory.gradients = bytes[static_cast<int>(MemoryKind::kGradients)];
  memory.optimizer = bytes[static_cast<int>(MemoryKind::kOptimizer)];
  memory.activations = bytes[static_cast<int>(MemoryKind::kActivations)];
  return memory;
}

grpc::ServerUnaryReactor* StageServiceAdapter::LoadCell(grpc::CallbackServerContext* context,
                                                        const v1::LoadCellRequest* request,
                                                        v1::LoadCellResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<LoadCommand> command = FromProto(*request);
  if (!command.ok()) {
    reactor->Finish(ToGrpc(command.status()));
    return reactor;
  }
  runtime_->Load(*std::move(command), Reply<LoadResult>(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* StageServiceAdapter::Run(grpc::CallbackServerContext* context,
                                                   const v1::RunRequest* request,
                                                   v1::RunResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<RunCommand> command = FromProto(*request);
  if (!command.ok()) {
    reactor->Finish(ToGrpc(command.status()));
    return reactor;
  }
  runtime_->Run(*std::move(command), Reply<StepReport>(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* StageServiceAdapter::Abort(grpc::CallbackServerContext* context,
                                                     const v1::AbortRequest* request,
                                                     v1::AbortResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_->Abort(FromProto(request->fence()), absl::AbortedError(request->reason()));
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* StageServiceAdapter::WriteShard(grpc::CallbackServerContext* context,
                                                          const v1::WriteShardRequest* request,
                                                          v1::WriteShardResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_->WriteShard(FromProto(*request), Reply<ShardInfo>(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* StageServiceAdapter::ReleaseCell(grpc::CallbackServerContext* context,
                                                           const v1::ReleaseCellRequest* request,
                                                           v1::ReleaseCellResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_->Release(FromProto(request->fence()),
                    [reactor](const absl::Status& status) { reactor->Finish(ToGrpc(status)); });
  return reactor;
}

grpc::ServerUnaryReactor* StageServiceAdapter::ProfileModel(grpc::CallbackServerContext* context,
                                                            const v1::ProfileModelRequest* request,
                                                            v1::ProfileModelResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<JobSpec> spec = FromProto(request->spec());
  if (!spec.ok()) {
    reactor->Finish(ToGrpc(spec.status()));
    return reactor;
  }
  runtime_->Profile(*spec, Reply<std::vector<LayerProfile>>(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* StageServiceAdapter::GetStatus(grpc::CallbackServerContext* context,
                                                         const v1::GetStatusRequest*,
                                                         v1::GetStatusResponse* response) {
  const StageStatus status = runtime_->Snapshot();
  response->set_state(status.state);
  *response->mutable_fence() = ToProto(status.fence);
  response->set_stage(status.stage.value);
  response->set_micro_batch(status.micro_batch.value);
  response->set_phase(PhaseName(status.phase));
  response->set_waiting_for(status.waiting_for);
  *response->mutable_phases() = ToProto(status.phases);
  *response->mutable_memory() = ToProto(ToStageMemory(status.memory.current));
  response->set_progress(status.progress);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace stagecoach
