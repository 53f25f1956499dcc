// How many jobs, specs and requests there may be, of all callers and of one user. What a user's
// calls hold while they are checked counts as what its jobs hold: many large ones in line would
// else take the room of the others'.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "coordinator/loop/job_loop.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostPlanning = 256;  // requests at a time

constexpr char kSmallerSpec[] =
    "divide the lines of `write` among several jobs, and name a network in the place of a long "
    "list of layers";

// taken: of a text that says whose.
absl::Status RoomForSpec(int64_t bytes, int64_t taken, int64_t most, const std::string& whose) {
  if (taken + bytes <= most) return absl::OkStatus();
  if (bytes > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec: has ", bytes, " bytes as it is kept; those of ", whose, " may have ",
                     most, " together, so this one has no room at any time; ", kSmallerSpec));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("spec: has ", bytes, " bytes as it is kept, those of ", whose, " have ", taken,
                   ", and together they may have ", most, "; try again later, or ", kSmallerSpec));
}

}  // namespace

// One user's jobs leave room for those of others.
absl::Status JobLoop::RoomForAJobOf(const JobCaller& user, int64_t spec_bytes) const {
  const JobManagerOptions& options = parts_.options;
  const int64_t most_jobs = std::max<int64_t>(1, options.max_jobs / options.shares_of_users);
  int64_t live = 0, taken = 0;
  for (const auto& [id, job] : jobs_) {
    if (IsTerminal(job.state.phase) || job.state.job->owner != user.name) continue;
    ++live;
    taken += job.text.bytes;
  }
  if (live >= most_jobs) {
    return absl::ResourceExhaustedError(absl::StrCat(
        live, " jobs of ", user.name,
        " wait or run already, the most that a user may have; try again later, or cancel some"));
  }
  for (const auto& [ticket, submission] : submitting_) {
    if (submission.owner == user.name) taken += submission.spec_bytes;
  }
  return RoomForSpec(spec_bytes, taken, options.max_spec_bytes / options.shares_of_users,
                     absl::StrCat("the unfinished jobs of ", user.name));
}

absl::Status JobLoop::RoomForAJob(int64_t spec_bytes, const JobCaller& caller) const {
  if (caller.own_only) RETURN_IF_ERROR(RoomForAJobOf(caller, spec_bytes));
  const auto live = std::ssize(LiveJobs());
  if (live >= parts_.options.max_jobs) {
    return absl::ResourceExhaustedError(
        absl::StrCat(live, " jobs wait or run already, the most there may be; try again later"));
  }
  return RoomForSpec(spec_bytes, live_spec_bytes_ + asked_spec_bytes_,
                     parts_.options.max_spec_bytes, "unfinished jobs");
}

absl::Status JobLoop::RoomToPlan(const JobCaller& caller) const {
  if (static_cast<int64_t>(submitting_.size() + planning_.size()) >= kMostPlanning) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMostPlanning, " jobs are being planned already; try again later"));
  }
  if (!caller.own_only) return absl::OkStatus();
  const auto is_of_caller = [&caller](const auto& entry) {
    return entry.second.owner == caller.name;
  };
  const int64_t asked = std::count_if(submitting_.begin(), submitting_.end(), is_of_caller) +
                        std::count_if(planning_.begin(), planning_.end(), is_of_caller);
  if (asked < std::max<int64_t>(1, kMostPlanning / parts_.options.shares_of_users)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      asked, " jobs of ", caller.name,
      " are being planned already, the most that a user may ask for at once; try again "
      "when some are answered"));
}

}  // namespace stagecoach
