// MovedRun: where the files of a job are, after the folder that holds its coordinator's state and
// them was moved or copied. A job's paths are absolute; a state folder that was /a/project/runs/1
// and is /b/project/runs/1 says that /a/project is /b/project now.
// Ownership: values; borrows the file system.
// Threads:   thread-compatible.
#ifndef STAGECOACH_COORDINATOR_LOOP_MOVED_RUN_H_
#define STAGECOACH_COORDINATOR_LOOP_MOVED_RUN_H_

#include <string>

#include "checkpoint/files/file_system.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

class MovedRun {
 public:
  // The state folder at the last start and at this one. Nothing has moved where one is empty or not
  // absolute.
  MovedRun(const std::string& before, const std::string& now, FileSystem* files);

  // Where the path leads now: itself, unless it lies in what moved and something is there.
  std::string Path(const std::string& path) const;
  // True: a path of the job's data, or of the weights that it begins with, is another now.
  bool Move(JobSpec* spec) const;

 private:
  std::string before_, now_;  // what moved; empty: nothing
  FileSystem* const files_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_MOVED_RUN_H_
