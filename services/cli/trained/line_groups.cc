#include "services/cli/trained/line_groups.h"

#include <algorithm>

namespace stagecoach {

int64_t LinesOfGroup(int64_t lines, int64_t batch, const GroupSizes& usual) {
  constexpr int64_t kStagesWithWork = 8;
  const int64_t share = (lines + kStagesWithWork - 1) / kStagesWithWork;
  const int64_t wanted = batch > 0 ? batch : std::clamp(share, usual.fewest, usual.most);
  return std::max<int64_t>(1, std::min(wanted, lines));
}

}  // namespace stagecoach
