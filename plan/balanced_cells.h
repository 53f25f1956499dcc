// BalanceStages: cuts for stages with several cells, whose sums count and not the single cells.
// Units: costs as those of MinimizeSlowest (plan/plan.h).
#ifndef STAGECOACH_PLAN_BALANCED_CELLS_H_
#define STAGECOACH_PLAN_BALANCED_CELLS_H_

#include <span>

#include "plan/plan.h"

namespace stagecoach {

// Moves one cut at a time to where the slowest stage is fastest, and of those to the smallest sum of
// squares, as long as that helps. `start` has the cells' placement. Not always the best cuts: two
// that would have to move together stay.
Partition BalanceStages(Partition start, std::span<const double> costs,
                        std::span<const double> repeats, std::span<const double> shares);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_BALANCED_CELLS_H_
