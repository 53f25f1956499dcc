// RowRun: rows of a table that say the same again and again, so that a long table shows them once.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_ROW_RUNS_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_ROW_RUNS_H_

#include <span>
#include <string>
#include <vector>

namespace stagecoach {

// Rows [first, last): the first `period` rows over and over, three times at least; or one row.
struct RowRun {
  int first = 0, last = 0, period = 1;
  int times() const { return (last - first) / period; }
  friend bool operator==(const RowRun&, const RowRun&) = default;
};

// All rows, in order. Rows with equal keys say the same.
std::vector<RowRun> FindRowRuns(std::span<const std::string> keys, int longest_period);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_ROW_RUNS_H_
