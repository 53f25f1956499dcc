// Checks whether a job's network can write text token by token (network/passes/decoding.h).
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT naming model or data, its kind and the reason.
#ifndef STAGECOACH_PLAN_DECODING_CHECKS_H_
#define STAGECOACH_PLAN_DECODING_CHECKS_H_

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// `stagecoach generate`: it reads tokens alone, and looks back only.
absl::Status CheckWritesText(const JobSpec& spec, const Network& network);

// It was trained on pairs, and reads a source.
absl::Status CheckTranslates(const JobSpec& spec, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DECODING_CHECKS_H_
