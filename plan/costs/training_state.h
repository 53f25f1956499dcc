// Training state: what of a job is in its checkpoints and snapshots: parameters, states and what
// the optimizer keeps.
// Units: bytes of the tensors alone.  Errors: none; what has no 64 bits comes out as the largest
//        number.
#ifndef STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_
#define STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_

#include <cstdint>

#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// Of layers [first, last). Tied parameters are their owner's.
int64_t TrainingStateBytes(const Network& network, const TrainingSpec& training, int first,
                           int last);

// No more than a shard file of these layers may take, with its header.
int64_t MostShardBytes(const Network& network, const TrainingSpec& training, int first, int last);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_TRAINING_STATE_H_
