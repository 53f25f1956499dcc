// WeightsHere: checks the file that a job begins with (`initialize`) by the file on the client's
// own machine.
// Threads: pure function of its argument and the file system.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_WEIGHTS_HERE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_WEIGHTS_HERE_H_

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// As WeightFile (stage/weights/weight_file.h), which every stage opens, but without its numbers.
absl::Status CheckWeightsHere(const JobSpec& spec, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_WEIGHTS_HERE_H_
