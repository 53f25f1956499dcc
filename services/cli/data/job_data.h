// JobData: the files of this machine that a job names, as one data set. Where all of them lie in one
// folder, each has its own name in the set; otherwise the number of its folder stands before it. So
// files beside each other stay so, as does what lies in another path of the job.
// Threads:   pure functions of their arguments and the file system.
// Errors:    FilesOfJob: INVALID_ARGUMENT with field, path and remedy; FileSet's.
// See:       docs/job_files.md, "Where the data is".
#ifndef STAGECOACH_SERVICES_CLI_DATA_JOB_DATA_H_
#define STAGECOACH_SERVICES_CLI_DATA_JOB_DATA_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/data/file_set.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

struct JobData {
  FileSet files;                             // none: the job names no file of this machine
  std::map<std::string, std::string> paths;  // in the set, by those of the job
};
// not_here: paths that the stages' machines have.
absl::StatusOr<JobData> FilesOfJob(const v1::JobSpec& spec,
                                   const std::set<std::string>& not_here = {});

// Puts paths of the set in the place of the job's.
void ChangeJobPaths(const JobData& data, const std::string& set_id, v1::JobSpec* spec);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_DATA_JOB_DATA_H_
