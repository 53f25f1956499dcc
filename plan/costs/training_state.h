// Training state: the part of a job in its checkpoints and snapshots: parameters, states and the
// optimizer's state.
// Units: bytes of the tensors alone.  Errors: none; sizes beyond 64 bits come out as the largest
//        number.
#ifndef STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_
#define STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_

#include <cstdint>

#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// Bytes of layers [first, last). Tied parameters count for their owner.
int64_t TrainingStateBytes(const Network& network, const TrainingSpec& training, int first,
                           int last);

// Upper bound of a shard file of these layers, with its header.
int64_t MostShardBytes(const Network& network, const TrainingSpec& training, int first, int last);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_
