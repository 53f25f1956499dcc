#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

Outputs TwoSgdSteps(Backend& backend, int64_t n, bool momentum) {
  Bench bench(backend);
  SgdArgs args = {.value = bench.Normal({n}),
                  .gradient = bench.Normal({n}),
                  .gradient_scale = 0.5f,
                  .learning_rate = 0.1f,
                  .momentum = momentum ? 0.9f : 0.0f,
                  .weight_decay = 0.01f};
  if (momentum) args.velocity = bench.Normal({n});
  backend.Sgd(args);
  backend.Sgd(args);
  Outputs outputs = {bench.Read("value", args.value)};
  if (momentum) outputs.push_back(bench.Read("velocity", args.velocity));
  return outputs;
}

Outputs TwoAdamWSteps(Backend& backend, int64_t n) {
  Bench bench(backend);
  AdamWArgs args = {.value = bench.Normal({n}),
                    .gradient = bench.Normal({n}),
                    .m = bench.From(std::vector<float>(n, 0.0f), {n}),
                    .v = bench.From(std::vector<float>(n, 0.0f), {n}),
                    .gradient_scale = 0.25f,
                    .learning_rate = 3e-4f,
                    .beta1 = 0.9f,
                    .beta2 = 0.999f,
                    .epsilon = 1e-8f,
                    .weight_decay = 0.1f,
                    .correction1 = 0.1f,
                    .correction2 = 0.001f};
  backend.AdamW(args);
  args.correction1 = 0.19f;
  args.correction2 = 0.001999f;
  backend.AdamW(args);
  return {bench.Read("value", args.value), bench.Read("m", args.m), bench.Read("v", args.v)};
}

}  // namespace

void AddOptimizerRows(std::vector<ConformanceRow>& rows) {
  for (const int64_t n : {1, 5, 33, 20000}) {
    rows.push_back(
        {absl::StrCat("Sgd_", n), 1e-6, [=](Backend& b) { return TwoSgdSteps(b, n, false); }});
    rows.push_back({absl::StrCat("SgdMomentum_", n), 1e-6,
                    [=](Backend& b) { return TwoSgdSteps(b, n, true); }});
    rows.push_back(
        {absl::StrCat("AdamW_", n), 1e-6, [=](Backend& b) { return TwoAdamWSteps(b, n); }});
  }
}

std::vector<ConformanceRow> ConformanceRows() {
  std::vector<ConformanceRow> rows;
  AddLinearRows(rows);
  AddLayerNormRows(rows);
  AddAttentionRows(rows);
  AddElementwiseRows(rows);
  AddEmbeddingRows(rows);
  AddLossRows(rows);
  AddOptimizerRows(rows);
  return rows;
}

}  // namespace stagecoach::conformance
