// JobFiles: the files of jobs on the coordinator's disks, by job: checkpoints, exported weights,
// records.
// Ownership: borrows store and file system.
// Threads:   any that may wait for files. RemoveFilesOf: the effects thread of that job.
// Units:     bytes of files.
#ifndef STAGECOACH_COORDINATOR_LOOP_JOB_FILES_H_
#define STAGECOACH_COORDINATOR_LOOP_JOB_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "checkpoint/store/store.h"

namespace stagecoach {

struct JobFiles {
  CheckpointStore* store = nullptr;
  FileSystem* files = nullptr;
  std::string exports;  // folder of all exports: <job> at a job's end, <job>.step-... on request
  std::string records;  // folder of all records: <job>
};
// Those of a coordinator with this state folder.
JobFiles JobFilesIn(const std::string& state_folder, CheckpointStore* store, FileSystem* files);

// Whether a folder of exports has weights that a client asked for, and not those of a job's end.
bool IsRequestedExport(const std::string& name);

struct JobUsage {
  int64_t checkpoints = 0;       // with a committed name
  int64_t newest_step = -1;      // of these; -1: there is none
  int64_t checkpoint_bytes = 0;  // of all files in the job's folder of checkpoints
  absl::Status listed;           // why there may be others than these three say; OK: there are none
  int64_t export_bytes = 0;
  int64_t record_bytes = 0;
};
JobUsage UsageOf(const JobFiles& files, const std::string& job);

// Repeating it is harmless. Errors: the file system's; the rest stays for the next call.
absl::Status RemoveFilesOf(const JobFiles& files, const std::string& job);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_JOB_FILES_H_
