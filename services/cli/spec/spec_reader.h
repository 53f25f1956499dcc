// SpecReader: a job file (YAML or JSON) as stagecoach.v1.JobSpec. The schema is the protobuf
// descriptor, so a field added to the API is read without a change here. Beyond the plain mapping
// it takes: `stages: auto`; enum values by their short name in lower case (`schedule: gpipe`);
// `partition: auto` and `partition: uniform`; `schedule: {file: PATH}`. Relative paths of data and of weights become
// absolute, from the job file's folder, and ".." is resolved as on this machine. Beside `dataset` or
// `on_stages` they stay as they are.
// Threads:   pure functions of their arguments and the file.
// Errors:    INVALID_ARGUMENT "job.yaml:7:12: training.micro_batchs: unknown field; did you mean
//            \"micro_batches\"?". Refused: unknown and repeated fields, wrong types, numbers out of
//            range or not finite, two members of one choice, and what YamlLimits says.
// See:       docs/job_files.md.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_SPEC_READER_H_
#define STAGECOACH_SERVICES_CLI_SPEC_SPEC_READER_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "services/cli/spec/yaml_tree.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

// A spec with the positions of its fields ("training.steps", "model.sequence.layers[3]").
struct SpecFile {
  std::string file;
  v1::JobSpec spec;
  std::map<std::string, Position> positions;
};

absl::StatusOr<SpecFile> ParseSpec(const std::string& text, const std::string& file);
// path "-": standard input; relative data paths are then relative to the current folder.
absl::StatusOr<SpecFile> ReadSpecFile(const std::string& path);

// A valid spec, with the network that the validator made.
struct ValidSpecFile : SpecFile {
  JobSpec job;
  Network network;
};

// The domain's validator on the spec; its errors get the place of the field that they name.
absl::StatusOr<ValidSpecFile> ValidateSpecFile(SpecFile spec_file);
// Validates after a change to `job` that leaves its network as it is, as of the number of stages.
absl::Status ValidateAgain(const ValidSpecFile& spec_file);

// Puts "file:line:column: " before an error whose message begins with a field path of the file. If
// the path is not in the file, the place is that of its nearest parent.
absl::Status LocateError(const SpecFile& spec_file, const absl::Status& error);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_SPEC_READER_H_
