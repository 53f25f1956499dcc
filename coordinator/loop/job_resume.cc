// How a held job goes on: its spec with the number of stages asked for, first in the journal.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {

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
