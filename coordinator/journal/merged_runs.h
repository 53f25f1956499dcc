// MergeRuns: the jobs and histories of several runs of `stagecoach local` in one new journal, so
// that they can be looked at together. Each journal is copied first: a run's own folder is not
// written to.
//   A job's id stays where no other run has it. Else it is the run's name, if that is a name for a
//   job, or the id with the first number that is free.
// Threads:   the caller's.
// Errors:    of the new journal. A run that cannot be read is left out, and named with the reason.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_MERGED_RUNS_H_
#define STAGECOACH_COORDINATOR_JOURNAL_MERGED_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

// run_folders: that have a journal.sqlite. folder: where the new journal.sqlite comes, and the
// copies while they are read. Which runs are left out, each with its reason; in order of submission
// come the jobs of the others.
absl::StatusOr<std::vector<std::string>> MergeRuns(const std::vector<std::string>& run_folders,
                                                   const std::string& folder);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_MERGED_RUNS_H_
