// WeightsHere: what a client can say about the file that a job begins with (`initialize`) by the
// file on its own machine.
// Threads: pure function of its argument and the file system.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_WEIGHTS_HERE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_WEIGHTS_HERE_H_

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// As WeightFile (stage/weights/weight_file.h), which every stage opens; its numbers are not read
// here.
absl::Status CheckWeightsHere(const JobSpec& spec, const Network& network);
// The same, but OK for what cannot be read here: it may be there for the stages.
absl::Status CheckWeightsIfHere(const JobSpec& spec, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_WEIGHTS_HERE_H_
