// Activation memory: the peak of all that one program of a stage makes, keeps and moves, by walking
// it (StageMemoryQuery says how).
// Threads: pure functions.  Units: bytes; sizes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_PLAN_COSTS_ACTIVATION_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_ACTIVATION_MEMORY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "plan/costs/cost_model.h"

namespace stagecoach {

// Bytes of messages of tied parameters.
struct TiedBytes {
  std::vector<int64_t> received_values, received_gradients;
  int64_t passed_values = 0, passed_gradients = 0;  // those that only go on to the next stage
};

struct ActivationPeak {
  int64_t bytes = 0;
  StageMoment moment;
};
// programs: of all stages, for an evaluation or a training step. tied: by cell of the stage.
ActivationPeak PeakOfActivations(const Network& network, std::span<const StageProgram> programs,
                                 int stage, bool evaluation, std::span<const TiedBytes> tied,
                                 const StageMemoryQuery& query);

// Whether the head goes by chunks on this stage.
bool HasChunkedHead(const Network& network, const StageMemoryQuery& query);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_ACTIVATION_MEMORY_H_
