// Upper bound of the mini-batches of an evaluation. The held-out split has fewer, so the bound
// means all of them.
#ifndef STAGECOACH_PLAN_JOB_EVALUATION_BATCHES_H_
#define STAGECOACH_PLAN_JOB_EVALUATION_BATCHES_H_

#include <cstdint>

namespace stagecoach {

inline constexpr int64_t kMostEvaluationBatches = 1'000'000;

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_EVALUATION_BATCHES_H_
