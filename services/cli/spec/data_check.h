// Data check: checks a job's data by the file on the client's own machine.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_
#define STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/job/data_kinds.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// The files and folders that the stages of a job read. writes: of a job with `write` they read the
// tokenizer alone.
std::vector<DataFile> FilesRead(const DataSpec& data, bool writes);

// INVALID_ARGUMENT, as DataKind::CheckFile (plan/job/data_kinds.h), if a file can be read here but
// not trained on. Its head or its size shows that, as of a file for data.text that plainly is not
// text. OK for a file that cannot be read here: the stages may have it, and check it again.
absl::Status CheckDataFiles(const JobSpec& spec, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_DATA_CHECK_H_
