#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "operations/pointwise/dropout.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

// Includes arguments where the gate is 0 or 1 to the last bit, and those where it just is not.
Tensor GeluArguments(Bench& bench, int64_t n) {
  if (n != 17) return bench.Activation({n}, 3.0f);
  return bench.ActivationFrom({0.0f, -0.0f, 1e-20f, -1e-20f, 0.5f, -0.5f, 4.9f, -4.9f, 5.6f, -5.6f,
                               9.0f, -9.0f, 40.0f, -40.0f, 1e6f, -1e6f, 1.0f},
                              {17});
}

Outputs GeluBothWays(Bench& bench, int64_t n) {
  const Tensor x = GeluArguments(bench, n), y = bench.BlankActivation({n});
  RunOn(bench.backend(), {.operation = "gelu", .inputs = {x}, .outputs = {y}});
  const Tensor dy = bench.Activation({n}), dx = bench.BlankActivation({n});
  RunOn(bench.backend(), {.operation = "gelu_gradient", .inputs = {dy, x}, .outputs = {dx}});
  return {bench.Read("y", y), bench.Read("dx", dx)};
}

Outputs DropoutOnce(Bench& bench, int64_t n, double rate, bool in_place) {
  const Tensor x = bench.Activation({n});
  const Tensor y = in_place ? x : bench.BlankActivation({n});
  const RandomStream stream = TestStream();
  RunOn(bench.backend(),
        {.operation = "dropout",
         .attributes = ToAttributes(DropoutAttributes{.rate = rate, .draw = stream.operation}),
         .inputs = {x},
         .outputs = {y},
         .stream = stream});
  return {bench.Read("y", y)};
}

Outputs AddAndFill(Bench& bench, int64_t n) {
  const Tensor x = bench.Activation({n}), y = bench.Activation({n}), z = bench.BlankActivation({n});
  RunOn(bench.backend(), {.operation = "add", .inputs = {x, y}, .outputs = {z}});
  RunOn(bench.backend(), {.operation = "add", .inputs = {x, y}, .outputs = {y}});  // in place
  const Tensor filled = bench.BlankActivation({n});
  bench.backend().Fill(filled, 0.25f);
  return {bench.Read("y", y), bench.Read("z", z), bench.Read("filled", filled)};
}

Outputs Norm(Bench& bench, int64_t n, float special) {
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = RandomNormal(TestStream(), i);
  if (special != 0.0f) values[n / 2] = special;
  const Tensor x = bench.From(values, {n}), result = bench.Blank({1}, DType::kF64);
  bench.backend().SquaredNorm(x, result);
  Output output = bench.Read("norm", result);
  // What kind of "not finite" comes out is not promised.
  if (!std::isfinite(output.values[0])) output.values[0] = std::nan("");
  return {output};
}

}  // namespace

void AddElementwiseRows(std::vector<ConformanceRow>& rows) {
  constexpr auto kFloat32 = ConformanceRow::Types::kFloat32;  // norms are of gradients
  for (const int64_t n : {1, 5, 17, 33, 1000, 40001}) {
    rows.push_back({absl::StrCat("Gelu_", n), 2e-6, [=](Bench& b) { return GeluBothWays(b, n); }});
    rows.push_back({absl::StrCat("AddFill_", n), 0.0, [=](Bench& b) { return AddAndFill(b, n); }});
    rows.push_back({absl::StrCat("SquaredNorm_", n), 1e-12,
                    [=](Bench& b) { return Norm(b, n, 0.0f); }, 0.0, kFloat32});
    for (const int percent : {10, 50, 90}) {
      const bool in_place = percent == 50;
      rows.push_back({absl::StrCat("Dropout_", n, "_rate", percent), 0.0,
                      [=](Bench& b) { return DropoutOnce(b, n, percent / 100.0, in_place); }});
    }
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  rows.push_back({"SquaredNormInfinity", 1e-12, [](Bench& b) { return Norm(b, 50, kInfinity); },
                  0.0, kFloat32});
  rows.push_back({"SquaredNormNan", 1e-12, [](Bench& b) { return Norm(b, 50, std::nanf("")); }, 0.0,
                  kFloat32});
  rows.push_back({"SquaredNormLargest", 1e-12,
                  [](Bench& b) { return Norm(b, 50, std::numeric_limits<float>::max()); }, 0.0,
                  kFloat32});
}

}  // namespace stagecoach::conformance
