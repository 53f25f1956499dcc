#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

struct Size {
  int64_t rows, width;
};
constexpr Size kSizes[] = {{1, 1}, {1, 5}, {7, 17}, {33, 33}, {1000, 5}, {130, 384}, {1025, 64}};

// The rows' mean is far from zero, where a careless variance cancels.
Outputs ForwardAndBackward(Bench& bench, const Size& size) {
  const Shape matrix = {size.rows, size.width};
  LayerNormForwardArgs forward = {.x = bench.Activation(matrix, 1.5f, 4.0f),
                                  .weight = bench.Normal({size.width}, 0.5f, 1.0f),
                                  .bias = bench.Normal({size.width}),
                                  .y = bench.BlankActivation(matrix),
                                  .mean = bench.Blank({size.rows}),
                                  .rstd = bench.Blank({size.rows})};
  bench.backend().LayerNormForward(forward);
  const Tensor dy = bench.Activation(matrix);
  LayerNormBackwardInputArgs input = {.dy = dy,
                                      .x = forward.x,
                                      .weight = forward.weight,
                                      .mean = forward.mean,
                                      .rstd = forward.rstd,
                                      .dx = bench.BlankActivation(matrix)};
  bench.backend().LayerNormBackwardInput(input);
  LayerNormBackwardWeightArgs weight = {.dy = dy,
                                        .x = forward.x,
                                        .mean = forward.mean,
                                        .rstd = forward.rstd,
                                        .d_weight = bench.Normal({size.width}),
                                        .d_bias = bench.Normal({size.width})};
  bench.backend().LayerNormBackwardWeight(weight);
  Outputs outputs = {bench.Read("y", forward.y), bench.Read("mean", forward.mean),
                     bench.Read("rstd", forward.rstd)};
  // One column: the input's gradient is zero up to rounding, in units that no tolerance fits.
  if (size.width > 1) outputs.push_back(bench.Read("dx", input.dx));
  for (const Tensor& residual : {bench.Activation(matrix, 2.0f), dy}) {
    input.residual = residual;
    input.dx = bench.BlankActivation(matrix);
    bench.backend().LayerNormBackwardInput(input);
    outputs.push_back(bench.Read("dx onto a residual", input.dx));
  }
  outputs.push_back(bench.Read("d_weight", weight.d_weight));
  outputs.push_back(bench.Read("d_bias", weight.d_bias));
  return outputs;
}

}  // namespace

void AddLayerNormRows(std::vector<ConformanceRow>& rows) {
  for (const Size& size : kSizes) {
    rows.push_back({absl::StrCat("LayerNorm_", size.rows, "x", size.width), 2e-5,
                    [=](Bench& b) { return ForwardAndBackward(b, size); }});
  }
}

}  // namespace stagecoach::conformance
