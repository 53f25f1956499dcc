#include "stage/runtime/command_checks.h"

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/runtime/stage_mailbox.h"

namespace stagecoach {
namespace {

absl::Status CheckWriting(const RunCommand& command, const JobSpec& spec) {
  const auto refused = [&command](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("work: ", why, " (", command.fence.ToString(), ")"));
  };
  const bool writes = command.work == WorkKind::kWrite;
  if (spec.write.has_value() != writes && command.work != WorkKind::kNone) {
    return refused(writes ? "only jobs with `write` write"
                          : "a job with `write` does nothing else");
  }
  if (!writes) {
    const bool pauses = command.rounds != 0 || command.goes_on;
    return pauses ? refused("only writing has rounds and goes on") : absl::OkStatus();
  }
  const auto lines = static_cast<uint64_t>(spec.write->lines.size());
  const auto batch = static_cast<uint64_t>(spec.training.batch_size);
  if (command.evaluation_batch >= (lines + batch - 1) / batch) {
    return refused(absl::StrCat("mini-batch ", command.evaluation_batch, " of ", lines, " lines, ",
                                batch, " each"));
  }
  return command.rounds >= 0 ? absl::OkStatus() : refused("rounds must be >= 0");
}

}  // namespace

absl::Status CheckLoad(const LoadCommand& command, const LoadedCells* loaded) {
  if (loaded == nullptr) return absl::OkStatus();
  const Fence &fence = command.fence, &held = loaded->command.fence;
  if (Supersedes(fence, held)) return absl::OkStatus();
  if (fence.job != held.job || CompareIncarnation(fence, held) < 0) {
    return absl::AbortedError(absl::StrCat("load of ", fence.ToString(),
                                           " is older than what is loaded, ", held.ToString()));
  }
  RETURN_IF_ERROR(Annotate(loaded->aborted, "load of a cell that has ended"));
  if (fence == held && command.stage == loaded->command.stage) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("load of ", fence.ToString(), " as stage ",
                                         command.stage.value, ": ", held.ToString(),
                                         " is loaded as stage ", loaded->command.stage.value,
                                         "; another placement needs a higher generation"));
}

absl::Status CheckFence(const Fence& fence, const LoadedCells* loaded) {
  if (loaded == nullptr) {
    return absl::AbortedError(absl::StrCat("nothing is loaded here (", fence.ToString(), ")"));
  }
  const Fence& held = loaded->command.fence;
  if (fence.job == held.job && CompareIncarnation(fence, held) < 0) {
    return absl::AbortedError(
        absl::StrCat(fence.ToString(), " is older than what is loaded, ", held.ToString()));
  }
  if (fence.job != held.job || CompareIncarnation(fence, held) > 0) {
    return absl::AbortedError(
        absl::StrCat(fence.ToString(), " is not loaded here, ", held.ToString(), " is"));
  }
  return Annotate(loaded->aborted, "the cell has ended");
}

absl::Status CheckRun(const RunCommand& command, const LoadedCells& loaded) {
  RETURN_IF_ERROR(CheckWriting(command, loaded.command.spec));
  const bool translates = command.work == WorkKind::kTranslate;
  const bool evaluates = command.work == WorkKind::kEvaluate || translates;
  if (translates && !loaded.command.spec.evaluation.translate.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "work: only jobs with evaluation.translate translate (", command.fence.ToString(), ")"));
  }
  if (command.average && (!evaluates || command.apply.has_value() ||
                          loaded.command.spec.training.average.decay == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "average: only evaluations of a job that keeps averages (", command.fence.ToString(), ")"));
  }
  uint64_t next = loaded.next_step;
  bool undecided = loaded.undecided.has_value();
  if (command.apply.has_value()) {
    ASSIGN_OR_RETURN(const bool is_new, loaded.IsNew(*command.apply));
    if (is_new) {
      ++next;
      undecided = false;
    }
  }
  if (command.fence.step != next) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", command.fence.step, " asked for, step ", next, " is the next one on stage ",
        loaded.command.stage.value, " (", command.fence.ToString(), ")"));
  }
  if (command.work == WorkKind::kTrain && undecided) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", next, " has run on stage ", loaded.command.stage.value,
                     " and waits for its decision; to run it again, load again (",
                     command.fence.ToString(), ")"));
  }
  return absl::OkStatus();
}

absl::Status CheckShard(const WriteShardCommand& command, const LoadedCells& loaded) {
  if (command.fence.step == loaded.next_step) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "shard of step ", command.fence.step, " asked for, stage ", loaded.command.stage.value,
      " is at step ", loaded.next_step, " (", command.fence.ToString(), ")"));
}

}  // namespace stagecoach
