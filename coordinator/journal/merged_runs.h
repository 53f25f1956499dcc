// MergeRuns: the jobs and histories of several runs of `stagecoach local` in one new journal, so
// that they can be looked at together. Each journal is copied first: a run's own folder is not
// written to.
//   If no other run has a job's id, it stays. Otherwise the new id is the run's name, if valid, or
//   the old id with the first free number.
// Threads:   the caller's.
// Errors:    of the new journal. A run that cannot be read is left out, and named with the reason.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_MERGED_RUNS_H_
#define STAGECOACH_COORDINATOR_JOURNAL_MERGED_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

// run_folders: each has a journal.sqlite. folder: gets the new journal.sqlite, and the copies while
// they are read. The new journal has the jobs in order of submission. Returns the runs left out,
// each with its reason.
absl::StatusOr<std::vector<std::string>> MergeRuns(const std::vector<std::string>& run_folders,
                                                   const std::string& folder);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_MERGED_RUNS_H_
