#include "services/stage/stage_service.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/observe/log.h"
#include "services/stage/telemetry.h"
#include "stage/runtime/loaded_cells.h"

namespace stagecoach {
namespace {

using spdlog::level::info;
using spdlog::level::warn;

// The reply of a command whose result has a wire form; `log` writes a line about it first.
template <typename Result, typename Response>
auto Reply(Answer answer, Response* response,
           std::function<void(const absl::StatusOr<Result>&)> log) {
  return
      [answer = std::move(answer), response, log = std::move(log)](absl::StatusOr<Result> result) {
        log(result);
        if (result.ok()) *response = ToProto(*result);
        answer(ToGrpc(result.status()));
      };
}

std::string Text(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

void LogLoad(const Fence& fence, int stage, const absl::StatusOr<LoadResult>& result) {
  if (result.ok() && !result->folder.ok()) {
    LogJob(warn, fence.job, fence.step, "the folder of checkpoints cannot be used here: {}",
           Text(result->folder));
  } else if (result.ok()) {
    LogJob(info, fence.job, fence.step, "loaded as stage {}, generation {}: {} bytes of parameters",
           stage, fence.generation, result->memory.parameters);
    if (!result->attention.empty()) LogJob(info, fence.job, fence.step, "{}", result->attention);
    if (!result->local_note.empty()) {
      LogJob(info, fence.job, fence.step, "{}", result->local_note);
    }
    for (const std::string& note : result->weights_notes) {
      LogJob(info, fence.job, fence.step, "{}", note);
    }
    if (!result->snapshot_note.empty())
      LogJob(warn, fence.job, fence.step, "{}", result->snapshot_note);
    for (const std::string& note : result->data_notes) {
      LogJob(info, fence.job, fence.step, "{}", note);
    }
  } else {
    LogJob(warn, fence.job, fence.step, "not loaded: {}", Text(result.status()));
  }
}

// A line per step would push everything else out of the ring.
void LogRun(const Fence& fence, const absl::StatusOr<StepReport>& result) {
  if (!result.ok()) {
    LogJob(warn, fence.job, fence.step, "step failed: {}", Text(result.status()));
    return;
  }
  if (!result->copy_note.empty()) {
    LogJob(warn, fence.job, fence.step, "the shard is not copied: {}", result->copy_note);
  }
  if (!result->snapshot_note.empty()) {
    LogJob(warn, fence.job, fence.step, "{}", result->snapshot_note);
  }
  if (!result->finite) {
    LogJob(warn, fence.job, fence.step, "loss or gradients of this stage are not finite");
  }
  LogJob(spdlog::level::debug, fence.job, fence.step, "step done in {:.6f} s",
         result->step_seconds);
}

void LogShard(const Fence& fence, const absl::StatusOr<ShardInfo>& result) {
  if (result.ok()) {
    LogJob(info, fence.job, fence.step, "shard {} written, {} bytes", result->file, result->bytes);
  } else {
    LogJob(warn, fence.job, fence.step, "shard not written: {}", Text(result.status()));
  }
}

// A message has a limit of 4 MiB; of lines that do not fit, the newest count.
size_t FirstThatFits(const std::vector<LogEntry>& lines) {
  constexpr size_t kBytes = 2 << 20, kFieldBytes = 512;
  size_t first = lines.size();
  for (size_t bytes = 0; first > 0; --first) {
    bytes += lines[first - 1].message.size() + kFieldBytes;
    if (bytes > kBytes) break;
  }
  return first;
}

}  // namespace

void StageServiceAdapter::Serve(RpcLoop* loop) {
  using Service = v1::StageService::AsyncService;
  const auto serve = [&](auto ask, auto handler) {
    ServeUnary(loop, &service_, ask, std::bind_front(handler, this));
  };
  using This = StageServiceAdapter;
  serve(&Service::RequestLoadCell, &This::LoadCell);
  serve(&Service::RequestRun, &This::Run);
  serve(&Service::RequestAbort, &This::Abort);
  serve(&Service::RequestWriteShard, &This::WriteShard);
  serve(&Service::RequestFindSnapshots, &This::FindSnapshots);
  serve(&Service::RequestReleaseCell, &This::ReleaseCell);
  serve(&Service::RequestProfileModel, &This::ProfileModel);
  serve(&Service::RequestGetStatus, &This::GetStatus);
  serve(&Service::RequestGetStageTrace, &This::GetStageTrace);
  serve(&Service::RequestGetStageLogs, &This::GetStageLogs);
}

void StageServiceAdapter::set_name(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  name_ = name;
}

std::string StageServiceAdapter::name() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return name_;
}

// A name that was registered with another stage's address would have that stage's work replaced.
// UNAVAILABLE, as it says nothing of the job.
absl::Status StageServiceAdapter::CheckMeantFor(const std::string& stage) const {
  const std::string own = name();
  if (stage.empty() || stage == own) return absl::OkStatus();
  if (own.empty()) {
    return absl::UnavailableError(
        absl::StrCat("the stage at this address starts, and the command is meant for stage ",
                     ShownName(stage), ": it is not registered yet; try again"));
  }
  return absl::UnavailableError(
      absl::StrCat("this is stage ", own, ", and the command is meant for stage ", ShownName(stage),
                   ", which has registered with this one's address: give that stage its own by "
                   "--advertise, or end it"));
}

void StageServiceAdapter::Admit(const std::string& folder, const std::string& grant) {
  if (parts_.store != nullptr) parts_.store->Admit(folder, grant);
}

void StageServiceAdapter::Admit(const google::protobuf::RepeatedPtrField<v1::DataGrant>& grants) {
  if (parts_.data_sets == nullptr) return;
  for (const v1::DataGrant& grant : grants) {
    parts_.data_sets->Admit(grant.data_set(), {grant.folder(), grant.grant(), grant.unproven()});
  }
}

void StageServiceAdapter::LoadCell(const v1::LoadCellRequest& request,
                                   v1::LoadCellResponse* response, Answer answer) {
  if (const absl::Status meant = CheckMeantFor(request.stage_name()); !meant.ok()) {
    answer(ToGrpc(meant));
    return;
  }
  absl::StatusOr<LoadCommand> command = FromProto(request);
  if (!command.ok()) {
    answer(ToGrpc(command.status()));
    return;
  }
  const Fence fence = command->fence;
  const int stage = command->stage.value;
  Admit(command->checkpoint_folder, request.checkpoint_grant());
  Admit(command->probe_folder, request.probe_grant());
  Admit(request.data_grants());
  if (parts_.data_sets != nullptr) {
    std::set<std::string> sets;
    for (const v1::DataGrant& grant : request.data_grants()) sets.insert(grant.data_set());
    parts_.data_sets->KeepOnly(sets);
  }
  LogJob(info, fence.job, fence.step, "load as stage {} of {}, generation {}{}{}", stage,
         command->partition.stages(), fence.generation, command->resumes() ? ", from " : "",
         command->snapshot.manifest.empty() ? command->checkpoint_folder : "memory");
  parts_.runtime->Load(*std::move(command), Reply<LoadResult>(std::move(answer), response,
                                                              [fence, stage](const auto& result) {
                                                                LogLoad(fence, stage, result);
                                                              }));
}

void StageServiceAdapter::Run(const v1::RunRequest& request, v1::RunResponse* response,
                              Answer answer) {
  absl::StatusOr<RunCommand> command = FromProto(request);
  if (!command.ok()) {
    answer(ToGrpc(command.status()));
    return;
  }
  const Fence fence = command->fence;
  Admit(request.data_grants());
  parts_.runtime->Run(*std::move(command),
                      Reply<StepReport>(std::move(answer), response,
                                        [fence](const auto& result) { LogRun(fence, result); }));
}

void StageServiceAdapter::Abort(const v1::AbortRequest& request, v1::AbortResponse*,
                                Answer answer) {
  const Fence fence = FromProto(request.fence());
  LogJob(warn, fence.job, fence.step, "abort of generation {}: {}", fence.generation,
         request.reason());
  answer(ToGrpc(parts_.runtime->Abort(fence, absl::AbortedError(request.reason()))));
}

void StageServiceAdapter::WriteShard(const v1::WriteShardRequest& request,
                                     v1::WriteShardResponse* response, Answer answer) {
  WriteShardCommand command = FromProto(request);
  const Fence fence = command.fence;
  Admit(command.folder, request.grant());
  parts_.runtime->WriteShard(std::move(command), Reply<ShardInfo>(std::move(answer), response,
                                                                  [fence](const auto& result) {
                                                                    LogShard(fence, result);
                                                                  }));
}

void StageServiceAdapter::FindSnapshots(const v1::FindSnapshotsRequest& request,
                                        v1::FindSnapshotsResponse* response, Answer answer) {
  *response = ToProto(parts_.runtime->ListSnapshots(request.job_id(), request.key()));
  answer(grpc::Status::OK);
}

void StageServiceAdapter::ReleaseCell(const v1::ReleaseCellRequest& request,
                                      v1::ReleaseCellResponse*, Answer answer) {
  const Fence fence = FromProto(request.fence());
  parts_.runtime->Release(fence, [answer = std::move(answer), fence,
                                  data_sets = parts_.data_sets](const absl::Status& status) {
    if (status.ok()) LogJob(info, fence.job, fence.step, "released");
    if (status.ok() && data_sets != nullptr) data_sets->KeepOnly({});
    if (!status.ok()) LogJob(warn, fence.job, fence.step, "not released: {}", Text(status));
    answer(ToGrpc(status));
  });
}

void StageServiceAdapter::ProfileModel(const v1::ProfileModelRequest& request,
                                       v1::ProfileModelResponse* response, Answer answer) {
  if (const absl::Status meant = CheckMeantFor(request.stage_name()); !meant.ok()) {
    answer(ToGrpc(meant));
    return;
  }
  absl::StatusOr<ProfileCommand> command = FromProto(request);
  if (!command.ok()) {
    answer(ToGrpc(command.status()));
    return;
  }
  using Profile = std::vector<LayerProfile>;
  parts_.runtime->Profile(*std::move(command),
                          Reply<Profile>(std::move(answer), response, [](const auto& result) {
                            if (result.ok()) spdlog::info("measured {} layers", result->size());
                            if (result.ok()) return;
                            spdlog::warn("layers not measured: {}", Text(result.status()));
                          }));
}

void StageServiceAdapter::GetStatus(const v1::GetStatusRequest&, v1::GetStatusResponse* response,
                                    Answer answer) {
  const StageStatus status = parts_.runtime->Status();
  response->set_state(status.state);
  *response->mutable_fence() = ToProto(status.fence);
  response->set_stage(status.stage.value);
  response->set_micro_batch(status.micro_batch.value);
  response->set_phase(PhaseName(status.phase));
  response->set_waiting_for(status.waiting_for);
  *response->mutable_phases() = ToProto(status.phases);
  *response->mutable_memory() = ToProto(CurrentMemory(status.memory));
  response->set_progress(status.progress);
  response->set_now_unix_nanos(parts_.clock->UnixNanos());
  answer(grpc::Status::OK);
}

void StageServiceAdapter::GetStageTrace(const v1::GetStageTraceRequest& request,
                                        v1::GetStageTraceResponse* response, Answer answer) {
  if (request.job_id().empty()) {
    answer(ToGrpc(absl::InvalidArgumentError("job_id: empty; give the id of a job")));
    return;
  }
  v1::StageTrace& trace = *response->mutable_trace();
  trace.set_stage(StageId().value);
  trace.set_name(name());
  for (const TraceSpan& span : parts_.trace->Read(request.job_id(), request.steps())) {
    *trace.add_spans() = ToProto(span);
    // The cell may be gone by now; its last spans know what it was.
    if (span.stage.valid()) trace.set_stage(span.stage.value);
  }
  trace.set_now_unix_nanos(parts_.clock->UnixNanos());
  answer(grpc::Status::OK);
}

void StageServiceAdapter::GetStageLogs(const v1::GetStageLogsRequest& request,
                                       v1::GetStageLogsResponse* response, Answer answer) {
  const LogRing::Page page = parts_.logs->Read(request.after(), request.job_id(), request.limit(),
                                               request.none_until_unix_seconds());
  const std::string source = name();
  for (size_t i = FirstThatFits(page.lines); i < page.lines.size(); ++i) {
    *response->add_lines() = ToProto(page.lines[i], source);
  }
  response->set_newest(page.newest);
  answer(grpc::Status::OK);
}

}  // namespace stagecoach
