#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

struct Size {
  int64_t rows, in, out;
};
// One row and one column; odd widths; more rows than a block with and without a rest; outputs of
// more than one block with a rest.
constexpr Size kSizes[] = {{1, 1, 1},      {1, 5, 7},      {3, 17, 33},
                           {64, 33, 5},    {129, 17, 130}, {256, 64, 48},
                           {1000, 33, 17}, {1030, 96, 65}, {200, 384, 257}};

Outputs Forward(Backend& backend, const Size& size, bool bias, bool gelu) {
  Bench bench(backend);
  LinearForwardArgs args = {.x = bench.Normal({size.rows, size.in}),
                            .weight = bench.Normal({size.out, size.in}, 0.1f),
                            .y = bench.Blank({size.rows, size.out})};
  if (bias) args.bias = bench.Normal({size.out});
  if (gelu) args.activation = bench.Blank({size.rows, size.out});
  backend.LinearForward(args);
  Outputs outputs = {bench.Read("y", args.y)};
  if (gelu) outputs.push_back(bench.Read("activation", args.activation));
  return outputs;
}

Outputs BackwardInput(Backend& backend, const Size& size, bool gelu) {
  Bench bench(backend);
  LinearBackwardInputArgs args = {.dy = bench.Normal({size.rows, size.out}),
                                  .weight = bench.Normal({size.out, size.in}, 0.1f),
                                  .dx = bench.Blank({size.rows, size.in})};
  if (gelu) args.gelu_input = bench.Normal({size.rows, size.in}, 2.0f);
  backend.LinearBackwardInput(args);
  return {bench.Read("dx", args.dx)};
}

// Gradients do not start at zero: they are added to.
Outputs BackwardWeight(Backend& backend, const Size& size, bool bias) {
  Bench bench(backend);
  LinearBackwardWeightArgs args = {.dy = bench.Normal({size.rows, size.out}),
                                   .x = bench.Normal({size.rows, size.in}),
                                   .d_weight = bench.Normal({size.out, size.in})};
  if (bias) args.d_bias = bench.Normal({size.out});
  backend.LinearBackwardWeight(args);
  Outputs outputs = {bench.Read("d_weight", args.d_weight)};
  if (bias) outputs.push_back(bench.Read("d_bias", args.d_bias));
  return outputs;
}

}  // namespace

void AddLinearRows(std::vector<ConformanceRow>& rows) {
  constexpr double kTolerance = 1e-5;
  for (const Size& size : kSizes) {
    const std::string shape = absl::StrCat("_", size.rows, "x", size.in, "x", size.out);
    for (const bool option : {false, true}) {
      rows.push_back({absl::StrCat("LinearForward", option ? "BiasGelu" : "", shape), kTolerance,
                      [=](Backend& b) { return Forward(b, size, option, option); }});
      rows.push_back({absl::StrCat("LinearBackwardInput", option ? "Gelu" : "", shape), kTolerance,
                      [=](Backend& b) { return BackwardInput(b, size, option); }});
      rows.push_back({absl::StrCat("LinearBackwardWeight", option ? "Bias" : "", shape), kTolerance,
                      [=](Backend& b) { return BackwardWeight(b, size, option); }});
    }
    rows.push_back({absl::StrCat("LinearForwardBias", shape), kTolerance,
                    [=](Backend& b) { return Forward(b, size, true, false); }});
  }
}

}  // namespace stagecoach::conformance
