#include "coordinator/loop/performer.h"

#include <utility>

#include "coordinator/loop/store_effects.h"

namespace stagecoach {
namespace {

// The state machine ends an operation in which nothing moves and names who did not answer;
// keepalive ends calls to what is gone. This is the backstop, for stages may compute for hours.
constexpr double kCallSeconds = 7 * 86400;

}  // namespace

JobLimits LimitsOf(const JobManagerOptions& options) {
  JobLimits limits;
  limits.step_deadline_floor_seconds = options.step_deadline_floor_seconds;
  limits.load_deadline_seconds = options.load_deadline_seconds;
  limits.max_failures_per_step = options.max_failures_per_step;
  return limits;
}

template <typename Kind>
void JobLoop::Inbox::Add(const std::string& job, Kind kind) const {
  JobEvent event{job, {clock->MonotonicSeconds(), clock->UnixSeconds()}, std::move(kind)};
  post([loop = loop, event = std::move(event)]() mutable {
    loop->Deliver(std::move(event));
    loop->Settle();
  });
}

template <typename Call>
void JobLoop::Performer::Effect(uint64_t number, Call call) const {
  loop_.parts_.effect(number, [inbox = loop_.inbox_, id = id(), call = std::move(call)] {
    inbox->Add(id, call());
  });
}

void JobLoop::Performer::operator()(const ProbeFolder& action) const {
  Effect(number(), [store = store(), files = loop_.parts_.outside.file_system, action] {
    return RunProbe(*store, *files, action);
  });
}

void JobLoop::Performer::operator()(const CheckFolder& action) const {
  Effect(number(), [store = store(), files = loop_.parts_.outside.file_system, action] {
    return RunCheck(*store, *files, action);
  });
}

// Turns the answer of a stage into an event.
template <typename Kind>
auto JobLoop::Performer::Answer(const Fence& fence, int stage) const {
  return [inbox = loop_.inbox_, id = id(), fence, stage](auto result) {
    inbox->Add(id, Kind{fence, stage, std::move(result)});
  };
}

void JobLoop::Performer::operator()(const SendLoad& action) const {
  stages().Load(action.to, action.command, kCallSeconds,
                Answer<Loaded>(action.command.fence, action.stage));
}

void JobLoop::Performer::operator()(const SendRun& action) const {
  stages().Run(action.to, action.command, kCallSeconds,
               Answer<Reported>(action.command.fence, action.stage));
}

void JobLoop::Performer::operator()(const SendWriteShard& action) const {
  stages().WriteShard(action.to, action.command, kCallSeconds,
                      Answer<ShardWritten>(action.command.fence, action.stage));
}

void JobLoop::Performer::operator()(const SendFindSnapshots& action) const {
  stages().FindSnapshots(action.to, action.fence.job, action.key,
                         job_.state.limits.snapshot_deadline_seconds,
                         Answer<SnapshotsFound>(action.fence, action.stage));
}

void JobLoop::Performer::operator()(const SendProfile& action) const {
  const ProfileCommand command{job_.state.job->spec, NetworkOf(job_.state.job)};
  stages().Profile(action.to, command, kCallSeconds,
                   [inbox = loop_.inbox_, id = id(), fence = action.fence](auto profile) {
                     inbox->Add(id, Profiled{fence, std::move(profile)});
                   });
}

void JobLoop::Performer::operator()(const MakeJobPlan& action) const {
  loop_.parts_.plan([inbox = loop_.inbox_, id = id(), action] {
    inbox->Add(id, Planned{action.fence, RunPlan(action)});
  });
}

void JobLoop::Performer::operator()(const SendAbort& action) const {
  stages().Abort(action.to, action.fence, action.reason);
}

void JobLoop::Performer::operator()(const SendRelease& action) const {
  stages().Release(action.to, action.fence);
}

void JobLoop::Performer::operator()(const DoubtStage& action) const {
  loop_.fleet_.Doubt(action.name, action.incarnation);
}

void JobLoop::Performer::operator()(const NoteFolder& action) const {
  for (const StageProcess& stage : action.stages) loop_.fleet_.NoteFolder(stage, action.sees);
}

void JobLoop::Performer::operator()(const SearchCheckpoint& action) const {
  // Behind what the searched job has under way in its folder; what is found is pinned before it can
  // remove anything more.
  Effect(loop_.EffectsNumber(action.job), [store = store(), action, pins = loop_.pins_, id = id()] {
    CheckpointSearched result = RunSearch(*store, action);
    if (result.found.ok() && action.job != id) pins->Pin(id, action.job, {result.found->ref.step});
    return result;
  });
}

void JobLoop::Performer::operator()(const BeginCheckpoint& action) const {
  Effect(number(), [store = store(), action] { return RunBegin(*store, action); });
}

void JobLoop::Performer::operator()(const CommitCheckpoint& action) const {
  Effect(number(), [store = store(), action, owns = loop_.parts_.owns_folder, pins = loop_.pins_] {
    return RunCommit(*store, action, owns(), *pins);
  });
}

void JobLoop::Performer::operator()(const AbandonCheckpoint& action) const {
  loop_.parts_.effect(number(),
                      [store = store(), folder = action.folder] { store->Abandon(folder); });
}

void JobLoop::Performer::operator()(const ExportCheckpoint& action) const {
  const std::string folder = loop_.ExportFolder(id());
  // As it was accepted. The journal may be out of order at the moment; what is encoded anew says
  // the same.
  const absl::StatusOr<std::string> kept = loop_.parts_.journal->Spec(id());
  std::string config = kept.ok() ? *kept : loop_.parts_.outside.codec->Encode(job_.state.job->spec);
  Effect(number(),
         [store = store(), files = loop_.parts_.outside.file_system, action, folder,
          config = std::move(config), owns = loop_.parts_.owns_folder, pins = loop_.pins_] {
           return RunExport(*store, *files, action, folder, config, owns(), *pins);
         });
}

}  // namespace stagecoach
