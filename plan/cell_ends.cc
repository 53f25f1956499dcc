#include "plan/cell_ends.h"

#include <algorithm>
#include <numeric>

namespace stagecoach {

CellEnds FindCellEnds(int layers, int stages,
                      absl::FunctionRef<bool(int stage, int first, int last)> fits) {
  CellEnds ends(stages, std::vector<int>(layers));
  int reached = 0;  // the furthest first layer that the stages before leave to this one
  for (int stage = 0; stage < stages; ++stage) {
    std::iota(ends[stage].begin(), ends[stage].end(), 0);
    const int most = layers - (stages - 1 - stage);
    const int last_first = std::min(reached, most - 1);
    reached = 0;
    int end = 0;
    for (int first = stage; first <= last_first; ++first) {
      const int least = stage + 1 == stages ? layers : first + 1;
      end = std::max(end, least - 1);
      const int before = end;
      while (end < most && fits(stage, first, end + 1)) ++end;
      if (end == before) {
        while (end >= least && !fits(stage, first, end)) --end;
      }
      if (end < least) continue;
      ends[stage][first] = end;
      reached = std::max(reached, end);
    }
  }
  return ends;
}

}  // namespace stagecoach
