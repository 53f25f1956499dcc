// StageWriting: `translate` and `generate` on the stages of a cluster, as a job that writes texts. The
// cluster is the coordinator's, or one on this machine that lives as long as the command.
// Threads:   the main thread.
// Errors:    of the weights as WeightSource; of the options as writing_job.h; the coordinator's,
//            with the user's lines and options in the place of the job's fields.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_WRITING_STAGE_WRITING_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_WRITING_STAGE_WRITING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/written_texts.h"
#include "services/cli/trained/weight_source.h"

namespace stagecoach {

struct StageWritingRequest {
  WriteSpec write;  // of lines that CheckLinesOfJob takes
  WeightOptions weights;
  std::string tokenizer;    // empty: the job's
  WritingStages stages;     // given
  int64_t group_lines = 1;  // lines that are written together, as LinesOfGroup gives them
  std::optional<uint64_t> seed;
  std::function<absl::Status(const JobSpec&)> check;  // of the job that trained; empty: none
  std::string word = "line";                          // for a line in errors
  std::vector<int64_t> numbers;                       // of the lines in the user's input, from 1
};

struct StageWriting {
  StageWritingRequest request;
  std::string weights;  // their name
  v1::JobSpec job;
  std::optional<WeightSource> source;  // weights that the stages read, while the job runs
  int64_t key_bytes = 0;               // that keys, values and sources take of all stages at most
  std::set<std::string> stages_files;  // paths of the job that are not this machine's
};
absl::StatusOr<StageWriting> PrepareStageWriting(StageWritingRequest request,
                                                 CommandContext& context);

// Runs the job to its end and returns the exit code; why it failed is noted. A stop cancels it.
int RunStageWriting(const StageWriting& writing, const WrittenTextEvents& events,
                    CommandContext& context);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_WRITING_STAGE_WRITING_H_
