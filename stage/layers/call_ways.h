// CallWays: the kernels by which this device computes the calls of a job, asked before its first
// step. If a library refuses a shape on one machine and takes it on another, two stages with the
// same back end would compute different bits. So the answer is a part of the job's fingerprint.
// Every stage asks for the whole network, so that equal devices with different layers answer alike.
// Threads:   executor thread, as the back end.
// Errors:    the back end's. A call without a kernel is none: another stage has its layer.
#ifndef STAGECOACH_STAGE_LAYERS_CALL_WAYS_H_
#define STAGECOACH_STAGE_LAYERS_CALL_WAYS_H_

#include <string>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "plan/job/job_spec.h"
#include "stage/backends/backend.h"

namespace stagecoach {

struct CallWays {
  // To be appended to the back end's: ", 4x1024 attention of 12 heads: cuDNN". It has the ways that
  // vary (CallDescription::way_varies). For training steps alone: evaluations change no weight.
  std::string fingerprint;
  std::string note;  // for a log, with reasons
};
// Describes each call of the network's training steps once, in both sizes of micro-batches.
absl::StatusOr<CallWays> AskCallWays(const Network& network, const TrainingSpec& training,
                                     Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_CALL_WAYS_H_
