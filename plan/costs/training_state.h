// Training state: the part of a job in its checkpoints and snapshots: parameters, states and the
// optimizer's state.
// Units: bytes of the tensors alone.  Errors: none; sizes beyond 64 bits come out as the largest
//        number.
#ifndef STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_
#define STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_

#include <cstdint>
#include <vector>

#include "base/layer_range.h"
#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// Bytes of a stage's cells. Tied parameters count for their owner.
int64_t TrainingStateBytes(const Network& network, const TrainingSpec& training,
                           const std::vector<LayerRange>& cells);

// Upper bound of a shard file of these layers, with its header.
int64_t MostShardBytes(const Network& network, const TrainingSpec& training,
                       const std::vector<LayerRange>& cells);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_
