#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

struct LinearSize {
  int64_t rows, in, out;
};
// One row and one column; odd widths; more rows than a block with and without a rest; outputs of
// more than one block with a rest.
constexpr LinearSize kLinearSizes[] = {{1, 1, 1},      {1, 5, 7},      {3, 17, 33},
                                       {64, 33, 5},    {129, 17, 130}, {256, 64, 48},
                                       {1000, 33, 17}, {1030, 96, 65}, {200, 384, 257}};

Outputs Forward(Bench& bench, const LinearSize& size, bool bias, bool gelu) {
  LinearForwardArgs args = {.x = bench.Activation({size.rows, size.in}),
                            .weight = bench.Activation({size.out, size.in}, 0.1f),
                            .y = bench.BlankActivation({size.rows, size.out})};
  if (bias) args.bias = bench.Activation({size.out});
  if (gelu) args.activation = bench.BlankActivation({size.rows, size.out});
  bench.backend().LinearForward(args);
  Outputs outputs = {bench.Read("y", args.y)};
  if (gelu) outputs.push_back(bench.Read("activation", args.activation));
  return outputs;
}

Outputs ForwardOntoResidual(Bench& bench, const LinearSize& size, bool bias, bool of_input) {
  LinearForwardArgs args = {.x = bench.Activation({size.rows, size.in}),
                            .weight = bench.Activation({size.out, size.in}, 0.1f),
                            .y = bench.BlankActivation({size.rows, size.out})};
  if (bias) args.bias = bench.Activation({size.out});
  args.residual = of_input ? args.x : bench.Activation({size.rows, size.out}, 2.0f);
  const Output before = bench.Read("residual", args.residual);
  bench.backend().LinearForward(args);
  const Output after = bench.Read("residual", args.residual);
  CHECK(before.values == after.values) << "the residual was written";
  return {bench.Read("y", args.y)};
}

Outputs BackwardInput(Bench& bench, const LinearSize& size, bool gelu) {
  LinearBackwardInputArgs args = {.dy = bench.Activation({size.rows, size.out}),
                                  .weight = bench.Activation({size.out, size.in}, 0.1f),
                                  .dx = bench.BlankActivation({size.rows, size.in})};
  if (gelu) args.gelu_input = bench.Activation({size.rows, size.in}, 2.0f);
  bench.backend().LinearBackwardInput(args);
  return {bench.Read("dx", args.dx)};
}

// Gradients do not start at zero: they are added to.
Outputs BackwardWeight(Bench& bench, const LinearSize& size, bool bias) {
  LinearBackwardWeightArgs args = {.dy = bench.Activation({size.rows, size.out}),
                                   .x = bench.Activation({size.rows, size.in}),
                                   .d_weight = bench.Normal({size.out, size.in})};
  if (bias) args.d_bias = bench.Normal({size.out});
  bench.backend().LinearBackwardWeight(args);
  Outputs outputs = {bench.Read("d_weight", args.d_weight)};
  if (bias) outputs.push_back(bench.Read("d_bias", args.d_bias));
  return outputs;
}

}  // namespace

void AddLinearRows(std::vector<ConformanceRow>& rows) {
  constexpr double kTolerance = 1e-5;
  for (const LinearSize& size : kLinearSizes) {
    const std::string shape = absl::StrCat("_", size.rows, "x", size.in, "x", size.out);
    for (const bool option : {false, true}) {
      const double bfloat16 = option ? kRoundedTwice : kRoundedOnce;
      rows.push_back({absl::StrCat("LinearForward", option ? "BiasGelu" : "", shape), kTolerance,
                      [=](Bench& b) { return Forward(b, size, option, option); }, bfloat16});
      rows.push_back({absl::StrCat("LinearBackwardInput", option ? "Gelu" : "", shape), kTolerance,
                      [=](Bench& b) { return BackwardInput(b, size, option); }, bfloat16});
      rows.push_back({absl::StrCat("LinearBackwardWeight", option ? "Bias" : "", shape), kTolerance,
                      [=](Bench& b) { return BackwardWeight(b, size, option); }});
      rows.push_back({absl::StrCat("LinearForward", option ? "Bias" : "", "Residual", shape),
                      kTolerance,
                      [=](Bench& b) { return ForwardOntoResidual(b, size, option, false); }});
    }
    rows.push_back({absl::StrCat("LinearForwardBias", shape), kTolerance,
                    [=](Bench& b) { return Forward(b, size, true, false); }});
  }
  rows.push_back({"LinearForwardResidualOfItsInput", kTolerance, [](Bench& b) {
                    return ForwardOntoResidual(b, {130, 48, 48}, true, /*of_input=*/true);
                  }});
}

}  // namespace stagecoach::conformance
