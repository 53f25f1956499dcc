// Removal on request: of single checkpoints, and of all that a job has.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "checkpoint/files/folder_bytes.h"
#include "checkpoint/names.h"
#include "checkpoint/store/store.h"

namespace stagecoach {
namespace {

absl::Status Missing(const std::string& job, uint64_t step,
                     const std::vector<CheckpointRef>& refs) {
  std::vector<uint64_t> steps;
  for (const CheckpointRef& ref : refs) steps.push_back(ref.step);
  std::reverse(steps.begin(), steps.end());
  return absl::NotFoundError(
      absl::StrCat("job ", job, " has no checkpoint of step ", step, "; it has ",
                   steps.empty() ? "none" : absl::StrCat("those of ", absl::StrJoin(steps, ", "))));
}

}  // namespace

// The newest, and if it is damaged those before it down to the first that verifies.
std::set<uint64_t> CheckpointStore::StepsToGoBackTo(const std::vector<CheckpointRef>& refs) {
  std::set<uint64_t> steps;
  for (const CheckpointRef& ref : refs) {
    steps.insert(ref.step);
    if (Verify(ref).ok()) break;
  }
  return steps;
}

absl::StatusOr<std::vector<CheckpointRef>> CheckpointStore::ToRemove(
    const std::string& job, const CheckpointRemoval& removal,
    const std::vector<CheckpointRef>& refs) {
  const std::set<uint64_t> pinned(removal.pinned.begin(), removal.pinned.end());
  const std::set<uint64_t> kept =
      removal.keep_newest ? StepsToGoBackTo(refs) : std::set<uint64_t>();
  std::vector<CheckpointRef> chosen;
  for (const uint64_t step : std::set<uint64_t>(removal.steps.begin(), removal.steps.end())) {
    const auto ref = std::find_if(refs.begin(), refs.end(),
                                  [step](const CheckpointRef& r) { return r.step == step; });
    if (ref == refs.end()) {
      if (removal.missing_ok) continue;
      return Missing(job, step, refs);
    }
    if (kept.contains(step)) {
      return absl::FailedPreconditionError(
          absl::StrCat("step ", step, ": job ", job,
                       ", or a job that resumes from it, has not ended and goes back to this "
                       "checkpoint; cancel that job first, or remove older checkpoints only"));
    }
    if (pinned.contains(step)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "step ", step, ": this checkpoint of job ", job,
          " is in use, by a job that began with it or by an export; remove it once that job has "
          "ended (`stagecoach cancel` ends it) or the export is over"));
    }
    chosen.push_back(*ref);
  }
  return chosen;
}

absl::StatusOr<RemovedCheckpoints> CheckpointStore::Remove(const std::string& job,
                                                           const CheckpointRemoval& removal) {
  RETURN_IF_ERROR(CheckJobName(job));
  ASSIGN_OR_RETURN(const std::vector<CheckpointRef> refs, StepFolders(job));
  ASSIGN_OR_RETURN(const std::vector<CheckpointRef> chosen, ToRemove(job, removal, refs));
  RemovedCheckpoints removed;
  for (const CheckpointRef& ref : chosen) {
    const int64_t bytes = BytesBelow(*file_system_, ref.folder);
    RETURN_IF_ERROR(Annotate(Discard(ref), absl::StrCat("remove checkpoints of job ", job)));
    removed.steps.push_back(ref.step);
    removed.bytes += bytes;
  }
  // Also if nothing was left to remove: an earlier removal may have ended before this.
  const std::vector<CheckpointRef> left = List(job);
  if (!left.empty()) {
    WriteLatest(left.front());
  } else {
    file_system_->RemoveAll(JoinPath(JobFolder(job), kLatestFile)).IgnoreError();
  }
  return removed;
}

absl::Status CheckpointStore::RemoveJob(const std::string& job) {
  RETURN_IF_ERROR(CheckJobName(job));
  const std::string context = absl::StrCat("remove the checkpoints of job ", job);
  const absl::StatusOr<std::vector<CheckpointRef>> refs = StepFolders(job);
  RETURN_IF_ERROR(Annotate(refs.status(), context));
  for (const CheckpointRef& ref : *refs) RETURN_IF_ERROR(Annotate(Discard(ref), context));
  if (!HasFolder(job)) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(file_system_->RemoveAll(JobFolder(job)), context));
  return Annotate(file_system_->SyncFolder(root_), context);
}

}  // namespace stagecoach
