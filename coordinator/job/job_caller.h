// JobCaller: the caller of a request about jobs. A user sees and changes the jobs that it
// submitted. An operator sees and changes all of them. So does a caller that a server lets in
// without a name (no TLS, or certificates older than roles).
// Ownership: values.  Threads: pure functions.
// Errors:    CheckOwner: PERMISSION_DENIED, naming the job but not its owner.
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_CALLER_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_CALLER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/errors/caller_error.h"

namespace stagecoach {

struct JobCaller {
  std::string name;       // as a job's owner is kept, "user/alice"; empty: nobody knows
  bool own_only = false;  // its own jobs and no others

  bool May(const std::string& owner) const { return !own_only || (!name.empty() && name == owner); }
};

// UNAUTHENTICATED if the user's token was taken out of the file since the call was let in.
inline absl::Status CheckKnown(const JobCaller& caller) {
  if (!caller.own_only || !caller.name.empty()) return absl::OkStatus();
  return ForCaller(absl::UnauthenticatedError("who submits this job is not known any more"));
}

// owner: the job's; empty if its submitter had no name.
inline absl::Status CheckOwner(const JobCaller& caller, const std::string& job,
                               const std::string& owner) {
  if (caller.May(owner)) return absl::OkStatus();
  return ForCaller(absl::PermissionDeniedError(absl::StrCat(
      "job ", job, " is not of ", caller.name,
      ": a user sees and changes the jobs that it submitted; ask an operator for others")));
}

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_CALLER_H_
