// CellEnds: the furthest ends of cells that fit into a stage's memory, found by queries, and the
// best partition into such cells.
// Units and shapes: stages and layers count from 0, cells are [first, last).
#ifndef STAGECOACH_PLAN_CELL_ENDS_H_
#define STAGECOACH_PLAN_CELL_ENDS_H_

#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "plan/plan.h"

namespace stagecoach {

// By stage and first layer, the furthest end of a cell that fits there. It is the first layer
// itself if none fits, or if the stage cannot have this first layer: cells that fit the stages
// before do not reach it, or leave no layer for each stage.
using CellEnds = std::vector<std::vector<int>>;

// Asks `fits` at most about three times for each stage and layer, and never of a cell that leaves
// another stage without a layer. If a cell fits, it is taken to fit without its last layers too.
// Ends are looked for near those of the cell that begins a layer earlier.
CellEnds FindCellEnds(int layers, int stages,
                      absl::FunctionRef<bool(int stage, int first, int last)> fits);

// MinimizeSlowest among the partitions whose cells all fit: stage k holds layers [i, j) only if j
// <= ends[k][i]. nullopt: there are none.
std::optional<Partition> MinimizeSlowestThatFits(std::span<const double> costs,
                                                 std::span<const double> repeats,
                                                 std::span<const double> shares,
                                                 const CellEnds& ends);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_CELL_ENDS_H_
