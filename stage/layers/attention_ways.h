// AttentionWays: how this device computes the attention of a job, asked before its first step. If a
// library refuses a shape on one machine and takes it on another, two stages with the same back end
// would compute different bits. So the answer is a part of the job's fingerprint. Every stage asks
// for the whole network, so that equal devices with different layers answer alike.
// Threads:   executor thread, as the back end.
// Errors:    the back end's.
#ifndef STAGECOACH_STAGE_LAYERS_ATTENTION_WAYS_H_
#define STAGECOACH_STAGE_LAYERS_ATTENTION_WAYS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "plan/job/job_spec.h"
#include "stage/backends/backend.h"

namespace stagecoach {

struct AttentionWays {
  // To be appended to the back end's: ", 4x1024 attention of 12 heads: cuDNN". Empty if there is
  // one way only. For training steps alone: evaluations change no weight.
  std::string fingerprint;
  std::string note;  // for a log, with reasons
};
using AskWay = std::function<absl::StatusOr<AttentionWay>(const AttentionShape&, DType)>;
absl::StatusOr<AttentionWays> AskAttentionWays(const Network& network, const TrainingSpec& training,
                                               const AskWay& ask);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_ATTENTION_WAYS_H_
