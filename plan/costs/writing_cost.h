// WritingCost: the likely work of a sample of a job with `write`, layer by layer: its source once, and
// each row of its text. So the layers of an encoder weigh little, and a cut gives all stages work for
// each token.
// Threads: pure functions.
// Units:   FLOPs of a sample.
#ifndef STAGECOACH_PLAN_COSTS_WRITING_COST_H_
#define STAGECOACH_PLAN_COSTS_WRITING_COST_H_

#include <vector>

#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct WritingCost {
  std::vector<double> layer_flops;
  double target_share = 0;  // rows of all hypotheses, over the positions of a target
};

// Of a valid job.
WritingCost WritingCostOf(const WriteSpec& write, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_WRITING_COST_H_
