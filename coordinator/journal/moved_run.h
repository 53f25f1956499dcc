// MovedRun: finds a job's files after the folder around them and the coordinator's state was moved
// or copied. Paths of jobs are absolute. If the state folder was /a/project/runs/1 and is
// /b/project/runs/1, then /a/project is now /b/project. Paths in data sets that the coordinator keeps
// ("store:/data/ID/PATH") stay, for the sets move with the state folder.
// Ownership: values; borrows the file system.
// Threads:   thread-compatible.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_MOVED_RUN_H_
#define STAGECOACH_COORDINATOR_JOURNAL_MOVED_RUN_H_

#include <string>

#include "checkpoint/files/file_system.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

class MovedRun {
 public:
  // The state folder at the last start and at this one. If one is empty or relative, nothing has
  // moved.
  MovedRun(const std::string& before, const std::string& now, FileSystem* files);

  // The path's new place, if it was in the moved folder and something is there; else the path.
  std::string Path(const std::string& path) const;
  // True: a path of the job's data or initial weights changed.
  bool Move(JobSpec* spec) const;

 private:
  std::string before_, now_;  // what moved; empty: nothing
  FileSystem* const files_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_MOVED_RUN_H_
