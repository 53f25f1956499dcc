// ModelFiles: what stands beside the weights in a folder that Hugging Face's libraries load:
// config.json, and the tokenizer's files.
// Threads: any.
// Errors:  INVALID_ARGUMENT: no folder can hold the network (model_config.h).
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_MODEL_FILES_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_MODEL_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "plan/job/job_spec.h"
#include "services/cli/trained/renamed_weights.h"

namespace stagecoach {

struct ModelFiles {
  std::vector<FolderFile> files;
  std::string note;  // what is missing, and why; empty: nothing
};
// Of a job that trained. A job that began with a folder's weights keeps its config.json, where the
// network is still that one.
absl::StatusOr<ModelFiles> ModelFilesOf(ReadableFiles& files, const JobSpec& job);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_MODEL_FILES_H_
