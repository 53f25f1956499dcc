// ConformanceRow: one operation at one shape with seeded inputs; the rows hold every back end to
// the reference and to itself (other numbers of threads, a second run). Ownership: a row owns
// nothing of the back end; its tensors live for the call of run. Threads:   run calls the back end
// from the calling thread. Units and shapes: tolerance is relative to the larger of an element and
// the root mean square of
//            its output; 0 means the reference's bits.
// See:       suite.h for the tests, backend.h for the operations.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ROWS_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ROWS_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "stage/backends/backend.h"

namespace stagecoach::conformance {

struct Output {
  std::string name;
  std::vector<double> values;  // exact: float and double both fit
};
using Outputs = std::vector<Output>;

struct ConformanceRow {
  std::string name;  // letters, digits and underscores
  double tolerance = 0.0;
  std::function<Outputs(Backend&)> run;
};
inline void PrintTo(const ConformanceRow& row, std::ostream* out) { *out << row.name; }

std::vector<ConformanceRow> ConformanceRows();

// Parts of it, one file each.
void AddLinearRows(std::vector<ConformanceRow>& rows);
void AddLayerNormRows(std::vector<ConformanceRow>& rows);
void AddAttentionRows(std::vector<ConformanceRow>& rows);
void AddElementwiseRows(std::vector<ConformanceRow>& rows);
void AddEmbeddingRows(std::vector<ConformanceRow>& rows);
void AddLossRows(std::vector<ConformanceRow>& rows);
void AddOptimizerRows(std::vector<ConformanceRow>& rows);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ROWS_H_
