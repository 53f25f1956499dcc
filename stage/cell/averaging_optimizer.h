// An optimizer that keeps a moving average of each value beside it, of parameters and of states.
// Nothing that it does writes what the training reads.
// Ownership: borrows the back end; holds the tensors.  Threads: executor thread only.
#ifndef STAGECOACH_STAGE_CELL_AVERAGING_OPTIMIZER_H_
#define STAGECOACH_STAGE_CELL_AVERAGING_OPTIMIZER_H_

#include <memory>
#include <vector>

#include "stage/cell/optimizer.h"

namespace stagecoach {

// Updates by `inner`, then averages `values`, with one slot for each.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAveragingOptimizer(std::unique_ptr<Optimizer> inner,
                                                                  const AverageSpec& average,
                                                                  Tensors values,
                                                                  std::vector<OptimizerSlot> slots,
                                                                  Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_AVERAGING_OPTIMIZER_H_
