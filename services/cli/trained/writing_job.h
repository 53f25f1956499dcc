// WritingJob: a job that writes texts on the stages of a cluster (JobSpec::write) with the weights
// of another job.
// Threads:   pure functions.
// Errors:    INVALID_ARGUMENT naming the line or the option, and the remedy.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_WRITING_JOB_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_WRITING_JOB_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct WritingJobOptions {
  std::string name;           // of the weights; the job's name ends with it
  InitializeSpec initialize;  // exported weights
  ResumeSpec resume;          // or a checkpoint of a job of the coordinator
  std::string tokenizer;      // absolute path; empty: the one of the job that trained
  int64_t stages = 1;
  int64_t group_lines = 1;             // lines of a group, as LinesOfGroup gives them
  std::optional<uint64_t> seed;        // nullopt: the one of the job that trained
  std::optional<Precision> precision;  // nullopt: the same
  WriteSpec write;                     // one line at least
};

// trained: the job that trained the weights.
absl::StatusOr<JobSpec> MakeWritingJob(JobSpec trained, const WritingJobOptions& options);

// Whether a job takes the lines.
absl::Status CheckLinesOfJob(const std::vector<std::string>& lines);

// The words for fields of the job that a user of `translate` or `generate` knows.
struct UserWords {
  std::string stages = "--stages";  // the option
  std::string line = "line";        // for a line, or "prompt"
  std::vector<int64_t> numbers;     // of the job's lines in the user's input, from 1
};
// `message` of a server, with what the user gave in the place of the job's fields: "line 4" for
// write.lines[3], --tokens for write.generate.tokens.
std::string InTheUsersWords(absl::string_view message, const UserWords& words);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_WRITING_JOB_H_
