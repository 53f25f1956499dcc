// CellEnds: how far the cells reach that a stage has the memory for, found by asking, and the partition among them.
// Units and shapes: stages and layers count from 0, cells are [first, last).
#ifndef STAGECOACH_PLAN_CELL_ENDS_H_
#define STAGECOACH_PLAN_CELL_ENDS_H_

#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "plan/plan.h"

namespace stagecoach {

// By stage and first layer, the furthest end of a cell that fits there; the first layer itself if none does, and for
// first layers that the stage cannot have.
using CellEnds = std::vector<std::vector<int>>;

// `fits` is asked about three times for each stage and layer, and never of a cell that leaves another stage without a
// layer. A cell that fits is taken to fit without its last layers too; and ends are looked for near those of the cell
// that begins a layer earlier.
CellEnds FindCellEnds(int layers, int stages,
                      absl::FunctionRef<bool(int stage, int first, int last)> fits);

// MinimizeSlowest among the partitions whose cells all fit: stage k holds layers [i, j) only if j <= ends[k][i]. None
// if there are none.
std::optional<Partition> MinimizeSlowestThatFits(std::span<const double> costs,
                                                 std::span<const double> repeats,
                                                 std::span<const double> shares,
                                                 const CellEnds& ends);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_CELL_ENDS_H_
