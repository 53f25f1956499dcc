// BesideJobFile: what a relative path in a job file names. The job file's folder is what a user means
// by it, wherever the client runs.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_BESIDE_JOB_FILE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_BESIDE_JOB_FILE_H_

#include <string>

namespace stagecoach {

// Absolute, without "..". Paths in the cluster and in buckets are left.
std::string BesideJobFile(const std::string& file, const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_BESIDE_JOB_FILE_H_
