// CellPlacement: which stage holds which cell. A list of stages by cell; an empty one says that cell
// c is on stage c.
// Units: stages and cells count from 0. Edge c lies between cells c and c + 1.
#ifndef STAGECOACH_PLAN_SCHEDULES_CELL_PLACEMENT_H_
#define STAGECOACH_PLAN_SCHEDULES_CELL_PLACEMENT_H_

#include <cstddef>
#include <vector>

namespace stagecoach {

using CellPlacement = std::vector<int>;

inline int StageOf(const CellPlacement& placement, int cell) {
  return placement.empty() ? cell : placement[static_cast<size_t>(cell)];
}
std::vector<int> CellsOf(const CellPlacement& placement, int stage);  // ascending

// Cell c on stage c mod K: from the last stage activations go back to the first (Narayanan et al.,
// arXiv 2104.04473, section 2.2).
CellPlacement LoopPlacement(int stages, int cells_per_stage);
// Cells 0 to K - 1 down the stages and K to 2 K - 1 up again: the first stage has the last cell (Qi
// et al., arXiv 2401.10241, section 6).
CellPlacement VPlacement(int stages);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_CELL_PLACEMENT_H_
