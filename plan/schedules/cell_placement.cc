#include "plan/schedules/cell_placement.h"

namespace stagecoach {

std::vector<int> CellsOf(const CellPlacement& placement, int stage) {
  if (placement.empty()) return {stage};
  std::vector<int> cells;
  for (size_t cell = 0; cell < placement.size(); ++cell) {
    if (placement[cell] == stage) cells.push_back(static_cast<int>(cell));
  }
  return cells;
}

CellPlacement LoopPlacement(int stages, int cells_per_stage) {
  if (cells_per_stage == 1) return {};
  CellPlacement placement;
  for (int cell = 0; cell < stages * cells_per_stage; ++cell) placement.push_back(cell % stages);
  return placement;
}

CellPlacement VPlacement(int stages) {
  CellPlacement placement;
  for (int stage = 0; stage < stages; ++stage) placement.push_back(stage);
  for (int stage = stages; stage-- > 0;) placement.push_back(stage);
  return placement;
}

}  // namespace stagecoach
