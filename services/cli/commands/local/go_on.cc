#include "services/cli/commands/local/go_on.h"

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/job_name.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/spec/spec_difference.h"

namespace stagecoach {
namespace {

std::string WithStages(int64_t before, int64_t stages) {
  if (stages == 0 || stages == before) return "";
  const std::string instead = before == 0 ? "auto" : absl::StrCat(before);
  return absl::StrCat(", with ", stages, stages == 1 ? " stage" : " stages", " instead of ",
                      instead);
}

// "a-2" for a job "a", or the next number that is free.
absl::StatusOr<std::string> FreeId(JobClient& client, const std::string& id) {
  ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, client.List());
  std::set<std::string> taken;
  for (const v1::Job& job : jobs.jobs()) taken.insert(job.id());
  for (int number = 2;; ++number) {
    const std::string suffix = absl::StrCat("-", number);
    const std::string free = id.substr(0, kMaxJobNameLength - suffix.size()) + suffix;
    if (!taken.contains(free)) return free;
  }
}

// Tells of the newer ones that do not.
absl::StatusOr<uint64_t> NewestCheckpointThatHolds(JobClient& client, const v1::Job& job,
                                                   Console* console) {
  ASSIGN_OR_RETURN(const v1::ListCheckpointsResponse checkpoints,
                   client.ListCheckpoints(job.id(), /*verify=*/false));
  for (const v1::CheckpointInfo& info : checkpoints.checkpoints()) {
    if (info.error().empty()) return info.step();
    console->Note(absl::StrCat("passed over: the checkpoint of step ", info.step(), " of job ",
                               job.id(), ": ", info.error()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.id(), " (", StateName(job.state()), " at step ", job.step(),
                   ") has no checkpoint to go on from; ",
                   job.spec().resume().job().empty()
                       ? "submit its spec anew"
                       : absl::StrCat("it began from one of job ", job.spec().resume().job(),
                                      ": stagecoach resume ", job.spec().resume().job(),
                                      " --steps ", job.total_steps())));
}

absl::StatusOr<StartedJob> GoOnAsNewJob(JobClient& client, const v1::Job& job, int64_t stages,
                                        int64_t steps, const std::string& given_id,
                                        CommandContext& context) {
  if (job.spec().has_write()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.id(), " (", StateName(job.state()),
                     ") writes texts, and an ended one does not go on; submit its spec anew"));
  }
  ASSIGN_OR_RETURN(const uint64_t step, NewestCheckpointThatHolds(client, job, context.console));
  v1::JobSpec spec = job.spec();
  if (stages > 0) spec.mutable_pipeline()->set_stages(stages);
  const int64_t wanted = steps > 0 ? steps : job.total_steps();
  if (step >= static_cast<uint64_t>(wanted)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.id(), " (", StateName(job.state()), ") has a checkpoint of step ",
                     step, " and training.steps=", wanted,
                     ": nothing is left to do; ask for more steps with --steps"));
  }
  if (steps > 0) {
    spec.mutable_training()->set_steps(steps);
    spec.mutable_training()->clear_epochs();
  }
  spec.clear_resume();  // fresh_optimizer was for its own beginning, and so were other weights
  if (spec.training().lora().rank() == 0) spec.clear_initialize();
  spec.mutable_resume()->set_job(job.id());
  spec.mutable_resume()->set_step(static_cast<int64_t>(step));
  std::string id = given_id;
  if (id.empty()) {
    ASSIGN_OR_RETURN(id, FreeId(client, job.id()));
  }
  ASSIGN_OR_RETURN(const v1::Job started,
                   SubmitPatiently(client, id, spec, kSubmitPatienceSeconds, context.stop));
  context.console->Note(absl::StrCat("job ", id, " goes on from the checkpoint of job ", job.id(),
                                     " at step ", step,
                                     WithStages(job.spec().pipeline().stages(), stages),
                                     steps > 0 ? absl::StrCat(", to step ", steps) : ""));
  return StartedJob{started};
}

absl::Status CheckReadable(const v1::Job& job) {
  if (job.detail() != "set aside") return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.id(), " cannot be resumed: ", job.message()));
}

}  // namespace

bool IsHeld(const v1::Job& job) { return job.detail() == "held"; }

std::string GoesOnText(const v1::Job& before, int64_t stages) {
  std::string from = " from its beginning, for it has no checkpoint";
  if (before.has_last_checkpoint_step()) {
    from = absl::StrCat(" from the checkpoint of step ", before.last_checkpoint_step());
  } else if (before.spec().has_write()) {
    from.clear();
  }
  return absl::StrCat("job ", before.id(), " was interrupted at step ", before.step(), " of ",
                      before.total_steps(), " and goes on", from,
                      WithStages(before.spec().pipeline().stages(), stages));
}

absl::StatusOr<StartedJob> GoOn(JobClient& client, const v1::Job& job, int64_t stages,
                                int64_t steps, const std::string& id, CommandContext& context) {
  RETURN_IF_ERROR(CheckReadable(job));
  const bool other_steps = steps > 0 && steps != job.total_steps();
  if (other_steps || IsTerminal(job.state())) {
    return GoOnAsNewJob(client, job, stages, other_steps ? steps : 0, id, context);
  }
  if (!id.empty() && id != job.id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--id ", id, ": job ", job.id(),
                     " was only interrupted and goes on under its own id; leave --id out"));
  }
  if (!IsHeld(job)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job.id(), " goes on already (", job.detail(), " at step ", job.step(),
        "); to follow it:  stagecoach watch ", job.id(),
        "\nto give it other stages:  stagecoach cancel ", job.id(), "  and then resume it"));
  }
  ASSIGN_OR_RETURN(const v1::ResumeJobResponse resumed, client.Resume(job.id(), stages));
  context.console->Note(GoesOnText(job, stages));
  return StartedJob{resumed.job(), resumed.last_record()};
}

absl::StatusOr<StartedJob> StartOrGoOn(JobClient& client, const std::string& id,
                                       const v1::JobSpec& spec, double patience_seconds,
                                       const std::string& remedy, CommandContext& context) {
  const absl::StatusOr<v1::Job> known = client.Get(id);
  if (absl::IsNotFound(known.status())) {
    ASSIGN_OR_RETURN(const v1::Job job,
                     SubmitPatiently(client, id, spec, patience_seconds, context.stop));
    return StartedJob{job};
  }
  RETURN_IF_ERROR(known.status());
  RETURN_IF_ERROR(CheckReadable(*known));
  v1::JobSpec with_its_stages = spec;
  with_its_stages.mutable_pipeline()->set_stages(known->spec().pipeline().stages());
  if (!SpecDifference(known->spec(), with_its_stages).empty()) {
    return ExistsWithAnotherSpec(*known, spec, remedy);
  }
  if (!IsHeld(*known)) return StartedJob{*known};
  return GoOn(client, *known, spec.pipeline().stages(), /*steps=*/0, /*id=*/"", context);
}

}  // namespace stagecoach
