// Removal on request: of an ended job with its files, and of single checkpoints.
// A job goes in three steps: decided, and that is in the journal; its files removed, on its effects
// thread; its entry purged, as those of forgotten jobs. From the decision on nobody knows the job. A
// coordinator that starts goes on with what was decided.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "coordinator/loop/job_loop.h"
#include "coordinator/loop/store_effects.h"

namespace stagecoach {
namespace {

constexpr double kFilesRetrySeconds = 60;  // after files that could not be removed

absl::Status InUse(const std::string& id, const std::string& by) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id, " cannot be removed: its checkpoints are in use, ", by));
}

}  // namespace

// A job that has not ended and goes on from this one; empty: none.
std::string JobLoop::ResumerOf(const std::string& id) const {
  for (const auto& [other, job] : jobs_) {
    if (!IsTerminal(job.state.phase) && job.state.job->spec.resume.job == id) return other;
  }
  return "";
}

absl::Status JobLoop::MayRemove(const std::string& id) const {
  if (const Job* const live = Find(id); live != nullptr) {
    if (!live->unwritten.empty() && trouble_.has_value()) return NotOnDisk(*live);
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " is ", JobPhaseName(live->state.phase),
                     ": only ended jobs are removed; `stagecoach cancel ", id, "` ends it"));
  }
  const EndedJobs::Job* const ended = ended_.Find(id);
  if (ended == nullptr) return UnknownJob(id);
  if (ended->view->set_aside) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " cannot be removed: ", ended->view->message));
  }
  if (const std::string resumer = ResumerOf(id); !resumer.empty()) {
    return InUse(
        id, absl::StrCat("by job ", resumer, ", which resumes from it; remove it once ", resumer,
                         " has ended (`stagecoach cancel ", resumer, "` ends it)"));
  }
  return absl::OkStatus();
}

void JobLoop::RemoveJob(const std::string& id, std::function<void(absl::StatusOr<JobUsage>)> done) {
  if (absl::Status elsewhere = MayChange(); !elsewhere.ok()) return done(std::move(elsewhere));
  if (draining_) return done(absl::UnavailableError("the coordinator is shutting down"));
  if (const auto under_way = removals_.find(id); under_way != removals_.end()) {
    under_way->second.done.push_back(std::move(done));
    if (under_way->second.step == RemovalStep::kFailed) RemoveFiles(id);
    return;
  }
  RetireEnded();
  if (absl::Status may = MayRemove(id); !may.ok()) return done(std::move(may));
  Removal& removal = removals_[id];
  removal.view = ended_.Find(id)->view;
  removal.done.push_back(std::move(done));
  // Behind what others do in its folder: whoever reads a checkpoint has pinned it.
  parts_.effect(removal.view->sequence,
                [this, id, files = Files(), pins = pins_, post = parts_.post] {
                  const bool pinned = !pins->Of(id).empty();
                  const JobUsage usage = UsageOf(files, id);
                  post([this, id, pinned, usage] {
                    DecideRemoval(id, pinned, usage);
                    Settle();
                  });
                });
}

void JobLoop::DecideRemoval(const std::string& id, bool pinned, const JobUsage& usage) {
  absl::Status may = MayRemove(id);  // what was asked meanwhile came first
  if (may.ok() && pinned) {
    may = InUse(id, "by an export, a list or a submission; try again once that is over");
  }
  if (may.ok()) may = Annotate(OwnsFolder(), "the job was not removed");
  if (may.ok()) may = Annotate(parts_.journal->BeginRemoval(id), "the job was not removed");
  if (!may.ok()) {
    AnswerRemoval(id, may);
    removals_.erase(id);
    return;
  }
  Removal& removal = removals_.at(id);
  removal.freed = usage;
  ended_.Forget(id);
  if (parts_.outside.before_removal) {
    parts_.effect(removal.view->sequence,
                  [before = parts_.outside.before_removal, id] { before(id); });
  }
  RemoveFiles(id);
}

void JobLoop::RemoveFiles(const std::string& id) {
  Removal& removal = removals_.at(id);
  removal.step = RemovalStep::kFiles;
  parts_.effect(removal.view->sequence,
                [this, id, files = Files(), owns = parts_.owns_folder, post = parts_.post] {
                  absl::Status removed = owns();
                  if (removed.ok()) removed = RemoveFilesOf(files, id);
                  post([this, id, removed] { FilesRemoved(id, removed); });
                });
}

void JobLoop::FilesRemoved(const std::string& id, const absl::Status& status) {
  Removal& removal = removals_.at(id);
  removal.step = status.ok() ? RemovalStep::kEntry : RemovalStep::kFailed;
  purge_due_seconds_ = 0;
  if (status.ok()) return;
  removal.retry_seconds = Now().seconds + kFilesRetrySeconds;
  AnswerRemoval(id, Annotate(status, absl::StrCat("job ", id,
                                                  " is removed, but not all of its "
                                                  "files; the coordinator tries again "
                                                  "every minute")));
}

void JobLoop::RetryRemovals() {
  const double now = Now().seconds;
  for (const auto& [id, removal] : removals_) {
    if (removal.step == RemovalStep::kFailed && now >= removal.retry_seconds) RemoveFiles(id);
  }
}

double JobLoop::NextRetrySeconds() const {
  double next = std::numeric_limits<double>::infinity();
  for (const auto& [id, removal] : removals_) {
    if (removal.step == RemovalStep::kFailed) next = std::min(next, removal.retry_seconds);
  }
  return next;
}

std::vector<std::string> JobLoop::RemovedEntries() const {
  std::vector<std::string> ids;
  for (const auto& [id, removal] : removals_) {
    if (removal.step == RemovalStep::kEntry) ids.push_back(id);
  }
  return ids;
}

void JobLoop::EntryRemoved(const std::string& id) {
  const Removal& removal = removals_.at(id);
  former_generations_[id] = removal.view->generation;
  if (parts_.outside.on_removed) parts_.outside.on_removed(*removal.view);
  AnswerRemoval(id, removal.freed);
  removals_.erase(id);
}

void JobLoop::AnswerRemoval(const std::string& id, absl::StatusOr<JobUsage> answer) {
  Removal& removal = removals_.at(id);
  if (!answer.ok() && HiddenPlaces::Concern(removal.view->owner)) {
    answer = PlacesToHide().Hide(answer.status());
  }
  for (const auto& done : std::exchange(removal.done, {})) done(answer);
}

bool JobLoop::BeingRemoved(const std::string& id) const {
  const auto removal = removals_.find(id);
  return removal != removals_.end() && removal->second.step != RemovalStep::kAsked;
}

absl::Status JobLoop::NotBeingRemoved(const std::string& field, const std::string& id) const {
  if (!BeingRemoved(id)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(field, ": job ", id, " is being removed; try again once that is over"));
}

absl::Status JobLoop::OpenRemovals() {
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, parts_.journal->Removals());
  for (const std::string& id : ids) {
    const EndedJobs::Job* const ended = ended_.Find(id);
    if (ended == nullptr || ended->view->set_aside) continue;
    removals_[id].view = ended->view;
    ended_.Forget(id);
  }
  return absl::OkStatus();
}

void JobLoop::RemoveCheckpoints(const std::string& id, std::vector<uint64_t> steps, bool missing_ok,
                                std::function<void(absl::StatusOr<RemovedCheckpoints>)> done) {
  if (absl::Status elsewhere = MayChange(); !elsewhere.ok()) return done(std::move(elsewhere));
  if (draining_) return done(absl::UnavailableError("the coordinator is shutting down"));
  if (!Known(id)) return done(UnknownJob(id));
  if (steps.empty()) {
    return done(absl::InvalidArgumentError("steps: is empty; want the steps of checkpoints"));
  }
  const Job* const live = Find(id);
  CheckpointRemoval removal{std::move(steps), missing_ok, false, {}};
  const auto looks_for_newest = [&id](const auto& entry) {  // so it has no pin yet
    const JobState& state = entry.second.state;
    return !IsTerminal(state.phase) && state.job->spec.resume.job == id &&
           state.origin.resume_step < 0;
  };
  removal.keep_newest = (live != nullptr && !IsTerminal(live->state.phase)) ||
                        std::any_of(jobs_.begin(), jobs_.end(), looks_for_newest);
  const uint64_t ticket = ++last_ticket_;
  const std::string owner = live != nullptr ? live->state.job->owner : ended_.Find(id)->view->owner;
  removing_[ticket] = {std::move(done), owner};
  parts_.effect(EffectsNumber(id), [this, ticket, id, removal = std::move(removal),
                                    store = parts_.outside.checkpoints, pins = pins_,
                                    owns = parts_.owns_folder, post = parts_.post]() mutable {
    removal.pinned = pins->Of(id);
    absl::StatusOr<RemovedCheckpoints> removed = RunRemoval(*store, id, removal, owns());
    post([this, ticket, removed = std::move(removed)]() mutable {
      const auto asked = removing_.extract(ticket);
      if (!removed.ok() && HiddenPlaces::Concern(asked.mapped().owner)) {
        removed = PlacesToHide().Hide(removed.status());
      }
      asked.mapped().done(std::move(removed));
    });
  });
}

// Every caller that still waits.
void JobLoop::EndRemovals(const absl::Status& reason) {
  for (auto& [id, removal] : removals_) AnswerRemoval(id, reason);
  for (const auto& [ticket, asked] : removing_) asked.done(reason);
  removing_.clear();
}

}  // namespace stagecoach
