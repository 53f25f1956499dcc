// What clients ask of a job that is there: cancel it, let a held one go on, keep its checkpoints
// while they read them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {

absl::Status JobLoop::MayChange() const {
  if (!parts_.options.only_shows) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "these jobs are copies, only to be looked at; their checkpoints, and what goes on from them, "
      "are in "
      "the folders of their runs: stagecoach ui FOLDER shows one, stagecoach resume JOB "
      "--state-dir FOLDER "
      "goes on with it");
}

absl::StatusOr<JobView> JobLoop::Cancel(const std::string& id) {
  RETURN_IF_ERROR(MayChange());
  const Job* const job = Find(id);
  if (job != nullptr && !IsTerminal(job->state.phase)) Deliver({id, Now(), CancelRequested{}});
  Settle();
  // The next coordinator would take it up again.
  if (job != nullptr && !job->unwritten.empty()) return NotOnDisk(*job);
  return Get(id);
}

void JobLoop::PinResumed(const JobState& state) {
  if (state.job->spec.resume.job.empty() || state.origin.resume_step < 0) return;
  pins_->Pin(state.job->id, state.job->spec.resume.job,
             {static_cast<uint64_t>(state.origin.resume_step)});
}

void JobLoop::PinCheckpoints(
    const std::string& id, std::function<void(absl::StatusOr<std::shared_ptr<const void>>)> done) {
  if (const absl::Status elsewhere = MayChange(); !elsewhere.ok()) return done(elsewhere);
  if (removals_.contains(id)) {
    return done(absl::FailedPreconditionError(
        absl::StrCat("job ", id, " is being removed, and its checkpoints with it")));
  }
  const std::string holder = absl::StrCat("reader ", ++last_ticket_);  // no job is called so
  parts_.effect(EffectsNumber(id),
                [store = parts_.outside.checkpoints, pins = pins_, id, holder, done] {
                  std::vector<uint64_t> steps;
                  for (const CheckpointRef& ref : store->List(id)) steps.push_back(ref.step);
                  pins->Pin(holder, id, std::move(steps));
                  done(std::shared_ptr<const void>(
                      nullptr, [pins, holder](const void*) { pins->Release(holder); }));
                });
}

// First in the journal: its spec with the number of stages asked for.
absl::StatusOr<JobView> JobLoop::Resume(const std::string& id, int64_t stages) {
  RETURN_IF_ERROR(MayChange());
  if (draining_) return absl::UnavailableError("the coordinator is shutting down");
  if (const Job* const live = Find(id); live != nullptr && trouble_.has_value()) {
    if (!live->unwritten.empty()) return NotOnDisk(*live);
  }
  ASSIGN_OR_RETURN(JobView view, Get(id));
  if (view.set_aside) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " cannot be resumed: ", view.message));
  }
  if (IsTerminal(view.phase)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " is ", JobPhaseName(view.phase),
                     ", which stays so; submit a new job with resume.job=", id));
  }
  const int64_t before = view.spec->pipeline.stages;
  const bool same = stages == 0 || stages == before;
  if (view.phase != JobPhase::kHeld) {
    if (same) return view;
    return absl::FailedPreconditionError(
        absl::StrCat("pipeline.stages=", stages, ": job ", id, " is ", JobPhaseName(view.phase),
                     " with ", before, "; cancel it, then submit a new job with resume.job=", id));
  }
  if (!same && view.spec->pipeline.mixed_devices) {
    return absl::FailedPreconditionError(
        absl::StrCat("pipeline.stages=", stages, ": job ", id,
                     " has pipeline.mixed_devices, so its bits depend on which device has which "
                     "layers; resume it "
                     "with its ",
                     before, " stages"));
  }
  Job* const job = Find(id);
  auto definition = std::make_shared<JobDefinition>(*job->state.job);
  if (!same) definition->spec.pipeline.stages = stages;
  RETURN_IF_ERROR(ValidateJob(definition->spec, definition->network));
  const std::string spec_text = parts_.outside.codec->Encode(definition->spec);
  RETURN_IF_ERROR(Annotate(OwnsFolder(), "the job was not resumed"));
  RETURN_IF_ERROR(Annotate(parts_.journal->SetSpec(id, spec_text), "the job was not resumed"));
  const JobText text = TextOf(spec_text);
  live_spec_bytes_ += text.bytes - job->text.bytes;
  job->text = text;
  Deliver({id, Now(), JobResumed{std::move(definition)}});
  Settle();
  return Get(id);
}

}  // namespace stagecoach
