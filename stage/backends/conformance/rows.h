// ConformanceRow: one operation at one shape with seeded inputs. The rows compare every back end
// with the reference and with itself (other numbers of threads, a second run).
// Ownership: a row owns nothing of the back end; its tensors live for the call of run.
// Threads:   run calls the back end from the calling thread.
// Units and shapes: tolerances are relative to the larger of an element and the root mean square of
//            its output; 0 means the reference's bits.
// See:       suite.h for the tests, backend.h for the operations.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ROWS_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ROWS_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/numbers/dtype.h"
#include "operations/call_case.h"
#include "stage/backends/backend.h"

namespace stagecoach::conformance {

struct Output {
  std::string name;
  std::vector<double> values;  // exact: every type of a tensor fits
  DType dtype = DType::kF32;   // the tensor's type
};
using Outputs = std::vector<Output>;

// The numbers of a row's activations.
enum class Elements {
  kFloat32,
  kBfloat16,
  kRounded,  // float32 tensors with the values of kBfloat16, for the expected outputs
};

class Bench;

// Tolerances where a back end may round values inside of an operation, or where errors add up.
inline constexpr double kRoundedTwice = 1e-2;
inline constexpr double kRoundedInside = 2e-2;

struct ConformanceRow {
  enum class Types { kBoth, kFloat32, kBfloat16 };

  std::string name;  // letters, digits and underscores
  double tolerance = 0.0;
  std::function<Outputs(Bench&)> body;
  double bfloat16_tolerance = kRoundedOnce;  // for outputs that are bfloat16
  Types types = Types::kBoth;                // the row runs for these
  Elements elements = Elements::kFloat32;
  // The operation that keeps the row from being run on this back end; empty if there is none.
  std::function<std::string(Backend&)> missing = [](Backend&) { return std::string(); };

  Outputs run(Backend& backend) const;
  // Expected result of run: the reference, in float32 arithmetic on the same (rounded) inputs.
  Outputs Expected(Backend& reference) const;
  // Empty if the outputs agree within the row's tolerances; else the first place that does not.
  std::string Disagreement(const Outputs& actual, const Outputs& expected) const;
};
inline void PrintTo(const ConformanceRow& row, std::ostream* out) { *out << row.name; }

// All rows; those in bfloat16 have "_bfloat16" behind their names.
std::vector<ConformanceRow> ConformanceRows();

// Parts of ConformanceRows, one file each.
void AddCaseRows(std::vector<ConformanceRow>& rows);
void AddLinearRows(std::vector<ConformanceRow>& rows);
void AddAttentionRows(std::vector<ConformanceRow>& rows);
void AddElementwiseRows(std::vector<ConformanceRow>& rows);
void AddLossRows(std::vector<ConformanceRow>& rows);
void AddOptimizerRows(std::vector<ConformanceRow>& rows);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ROWS_H_
