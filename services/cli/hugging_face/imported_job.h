// ImportedJob: the text of a job file that trains the model of a Hugging Face folder, with comments
// that say what to change.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_CLI_HUGGING_FACE_IMPORTED_JOB_H_
#define STAGECOACH_SERVICES_CLI_HUGGING_FACE_IMPORTED_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/hugging_face/model_folder.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {

struct ImportedJobOptions {
  std::string text;     // file to train on, as the job has it
  int64_t context = 0;  // of a sequence; 0: the model's, but at most kUsualContext
};
inline constexpr int64_t kUsualContext = 1024;

// Errors: INVALID_ARGUMENT: the model does not take that context.
absl::StatusOr<std::string> ImportedJobText(const ModelFolder& folder,
                                            const ImportedJobOptions& options);

// The job of that text, as file `file`: a model that no job can have is refused here. Errors name the
// folder's config.json too.
absl::StatusOr<ValidSpecFile> CheckImportedJob(const ModelFolder& folder, const std::string& text,
                                               const std::string& file);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_HUGGING_FACE_IMPORTED_JOB_H_
