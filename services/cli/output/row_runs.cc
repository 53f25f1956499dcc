#include "services/cli/output/row_runs.h"

namespace stagecoach {
namespace {

constexpr int kLeastTimes = 3;

// The longest that begins at this row; the shortest period where several are as long.
RowRun RunAt(std::span<const std::string> keys, int first, int longest_period) {
  const int rows = static_cast<int>(keys.size());
  RowRun best = {.first = first, .last = first + 1};
  for (int period = 1; period <= longest_period && first + period < rows; ++period) {
    int end = first + period;
    while (end < rows && keys[end] == keys[end - period]) ++end;
    const RowRun run = {first, first + (end - first) / period * period, period};
    if (run.times() >= kLeastTimes && run.last > best.last) best = run;
  }
  return best;
}

}  // namespace

std::vector<RowRun> FindRowRuns(std::span<const std::string> keys, int longest_period) {
  std::vector<RowRun> runs;
  for (int row = 0; row < static_cast<int>(keys.size()); row = runs.back().last) {
    runs.push_back(RunAt(keys, row, longest_period));
  }
  return runs;
}

}  // namespace stagecoach
