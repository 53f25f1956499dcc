#include "stage/backends/conformance/rows.h"

#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {

Outputs ConformanceRow::run(Backend& backend) const {
  Bench bench(backend, elements);
  return body(bench);
}

Outputs ConformanceRow::Expected(Backend& reference) const {
  Bench bench(reference, elements == Elements::kBfloat16 ? Elements::kRounded : elements);
  return body(bench);
}

std::string ConformanceRow::Disagreement(const Outputs& actual, const Outputs& expected) const {
  return conformance::Disagreement(actual, expected, Tolerances{tolerance, bfloat16_tolerance});
}

std::vector<ConformanceRow> ConformanceRows() {
  using Types = ConformanceRow::Types;
  std::vector<ConformanceRow> all;
  AddCaseRows(all);
  AddLinearRows(all);
  AddAttentionRows(all);
  AddElementwiseRows(all);
  AddLossRows(all);
  AddOptimizerRows(all);
  std::vector<ConformanceRow> rows;
  for (const ConformanceRow& row : all) {
    if (row.types != Types::kBfloat16) rows.push_back(row);
  }
  for (ConformanceRow& row : all) {
    if (row.types == Types::kFloat32) continue;
    row.name += "_bfloat16";
    row.elements = Elements::kBfloat16;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stagecoach::conformance
