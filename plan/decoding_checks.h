// Checks whether a job's network can write text token by token (network/passes/decoding.h), and what
// the job says of that.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT naming model or data, its kind and the reason.
#ifndef STAGECOACH_PLAN_DECODING_CHECKS_H_
#define STAGECOACH_PLAN_DECODING_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// `stagecoach generate`: it reads tokens alone, and looks back only.
absl::Status CheckWritesText(const JobSpec& spec, const Network& network);

// It was trained on pairs, and reads a source.
absl::Status CheckTranslates(const JobSpec& spec, const Network& network);

// The beam fits the network's target, and keys and values can be counted. path: of `translate`.
absl::Status CheckBeam(const std::string& path, const TranslateSpec& translate, const JobSpec& spec,
                       const Network& network);

// A job's `write`, if it has one: part of ValidateJob.
absl::Status ValidateWrite(const JobSpec& spec, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DECODING_CHECKS_H_
