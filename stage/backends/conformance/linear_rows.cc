#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "operations/linear.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/operation_testing.h"

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
  const Tensor x = bench.Activation({size.rows, size.in});
  const Tensor weight = bench.Activation({size.out, size.in}, 0.1f);
  TensorCall call{.operation = "linear",
                  .attributes = ToAttributes(LinearAttributes{.bias = bias, .gelu = gelu}),
                  .inputs = {x, Whole(weight)},
                  .outputs = {bench.BlankActivation({size.rows, size.out})}};
  if (bias) call.inputs.push_back(Whole(bench.Activation({size.out})));
  if (gelu) call.outputs.push_back(bench.BlankActivation({size.rows, size.out}));
  RunOn(bench.backend(), call);
  Outputs outputs = {bench.Read("y", call.outputs[0])};
  if (gelu) outputs.push_back(bench.Read("activation", call.outputs[1]));
  return outputs;
}

Outputs ForwardOntoResidual(Bench& bench, const LinearSize& size, bool bias, bool of_input) {
  const Tensor x = bench.Activation({size.rows, size.in});
  const Tensor weight = bench.Activation({size.out, size.in}, 0.1f);
  TensorCall call{.operation = "linear",
                  .attributes = ToAttributes(LinearAttributes{.bias = bias, .residual = true}),
                  .inputs = {x, Whole(weight)},
                  .outputs = {bench.BlankActivation({size.rows, size.out})}};
  if (bias) call.inputs.push_back(Whole(bench.Activation({size.out})));
  const Tensor residual = of_input ? x : bench.Activation({size.rows, size.out}, 2.0f);
  call.inputs.push_back(residual);
  const Output before = bench.Read("residual", residual);
  RunOn(bench.backend(), call);
  const Output after = bench.Read("residual", residual);
  CHECK(before.values == after.values) << "the residual was written";
  return {bench.Read("y", call.outputs[0])};
}

Outputs InputGradient(Bench& bench, const LinearSize& size, bool gelu) {
  const Tensor dy = bench.Activation({size.rows, size.out});
  const Tensor weight = bench.Activation({size.out, size.in}, 0.1f);
  TensorCall call{.operation = "linear_input_gradient",
                  .attributes = ToAttributes(LinearInputGradientAttributes{.gelu = gelu}),
                  .inputs = {dy, Whole(weight)},
                  .outputs = {bench.BlankActivation({size.rows, size.in})}};
  if (gelu) call.inputs.push_back(bench.Activation({size.rows, size.in}, 2.0f));
  RunOn(bench.backend(), call);
  return {bench.Read("dx", call.outputs[0])};
}

// Gradients do not start at zero: they are added to.
Outputs WeightGradient(Bench& bench, const LinearSize& size, bool bias) {
  const Tensor dy = bench.Activation({size.rows, size.out});
  const Tensor x = bench.Activation({size.rows, size.in});
  TensorCall call{.operation = "linear_weight_gradient",
                  .attributes = ToAttributes(LinearWeightGradientAttributes{.bias = bias}),
                  .inputs = {dy, x},
                  .adds = {bench.Normal({size.out, size.in})}};
  if (bias) call.adds.push_back(bench.Normal({size.out}));
  RunOn(bench.backend(), call);
  Outputs outputs = {bench.Read("d_weight", call.adds[0])};
  if (bias) outputs.push_back(bench.Read("d_bias", call.adds[1]));
  return outputs;
}

}  // namespace

void AddLinearRows(std::vector<ConformanceRow>& rows) {
  constexpr double kTolerance = 1e-5;
  for (const LinearSize& size : kLinearSizes) {
    const std::string shape = absl::StrCat("_", size.rows, "x", size.in, "x", size.out);
    for (const bool option : {false, true}) {
      const double bfloat16 = option ? kRoundedTwice : kRoundedOnce;
      rows.push_back({absl::StrCat("Linear", option ? "BiasGelu" : "", shape), kTolerance,
                      [=](Bench& b) { return Forward(b, size, option, option); }, bfloat16});
      rows.push_back({absl::StrCat("LinearInputGradient", option ? "Gelu" : "", shape), kTolerance,
                      [=](Bench& b) { return InputGradient(b, size, option); }, bfloat16});
      rows.push_back({absl::StrCat("LinearWeightGradient", option ? "Bias" : "", shape), kTolerance,
                      [=](Bench& b) { return WeightGradient(b, size, option); }});
      rows.push_back({absl::StrCat("Linear", option ? "Bias" : "", "Residual", shape), kTolerance,
                      [=](Bench& b) { return ForwardOntoResidual(b, size, option, false); }});
    }
    rows.push_back({absl::StrCat("LinearBias", shape), kTolerance,
                    [=](Bench& b) { return Forward(b, size, true, false); }});
  }
  rows.push_back({"LinearResidualOfItsInput", kTolerance, [](Bench& b) {
                    return ForwardOntoResidual(b, {130, 48, 48}, true, /*of_input=*/true);
                  }});
}

}  // namespace stagecoach::conformance
