#include <cmath>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

// The copy that operations read must be the value rounded, to the bit.
Output ErrorsOfCompute(Bench& bench, const Tensor& value, const Tensor& compute) {
  Output errors{"compute", std::vector<double>(value.elements(), 0.0)};
  if (!compute.valid()) return errors;
  const Output exact = bench.Read("value", value), copy = bench.Read("compute", compute);
  for (size_t i = 0; i < errors.values.size(); ++i) {
    const Bfloat16 rounded(static_cast<float>(exact.values[i]));
    errors.values[i] = copy.values[i] - static_cast<float>(rounded);
  }
  return errors;
}

Tensor ComputeOf(Bench& bench, int64_t n) {
  return bench.elements() == Elements::kBfloat16 ? bench.BlankActivation({n}) : Tensor();
}

enum class Momentum { kNone, kPlain, kNesterov };

Outputs TwoSgdSteps(Bench& bench, int64_t n, Momentum kind) {
  const bool momentum = kind != Momentum::kNone;
  SgdArgs args = {.value = bench.Normal({n}),
                  .gradient = bench.Normal({n}),
                  .gradient_scale = 0.5f,
                  .learning_rate = 0.1f,
                  .momentum = momentum ? 0.9f : 0.0f,
                  .weight_decay = 0.01f,
                  .nesterov = kind == Momentum::kNesterov,
                  .compute = ComputeOf(bench, n)};
  if (momentum) args.velocity = bench.Normal({n});
  bench.backend().Sgd(args);
  bench.backend().Sgd(args);
  Outputs outputs = {bench.Read("value", args.value),
                     ErrorsOfCompute(bench, args.value, args.compute)};
  if (momentum) outputs.push_back(bench.Read("velocity", args.velocity));
  return outputs;
}

Outputs TwoAdamWSteps(Bench& bench, int64_t n) {
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
                    .correction2 = 0.001f,
                    .compute = ComputeOf(bench, n)};
  bench.backend().AdamW(args);
  args.correction1 = 0.19f;
  args.correction2 = 0.001999f;
  bench.backend().AdamW(args);
  return {bench.Read("value", args.value), bench.Read("m", args.m), bench.Read("v", args.v),
          ErrorsOfCompute(bench, args.value, args.compute)};
}

// One form where it is the inner rate that changes, one where it is the outer.
Outputs TwoRmsPropSteps(Bench& bench, int64_t n, bool inside) {
  RmsPropArgs args = {.value = bench.Normal({n}),
                      .gradient = bench.Normal({n}),
                      .square = bench.From(std::vector<float>(n, inside ? 1.0f : 0.0f), {n}),
                      .gradient_scale = 0.5f,
                      .inner_rate = inside ? 0.1f : 1.0f,
                      .outer_rate = inside ? 1.0f : 0.1f,
                      .decay = 0.9f,
                      .inside = inside ? 1.0f : 0.0f,
                      .outside = inside ? 0.0f : 1e-3f,
                      .weight_decay = inside ? 0.01f : 0.0f,
                      .compute = ComputeOf(bench, n)};
  if (inside) args.velocity = bench.Normal({n});
  if (inside) args.momentum = 0.9f;
  bench.backend().RmsProp(args);
  (inside ? args.inner_rate : args.outer_rate) = 0.05f;
  bench.backend().RmsProp(args);
  Outputs outputs = {bench.Read("value", args.value), bench.Read("square", args.square),
                     ErrorsOfCompute(bench, args.value, args.compute)};
  if (inside) outputs.push_back(bench.Read("velocity", args.velocity));
  return outputs;
}

LambArgs LambOf(Bench& bench, int64_t n, bool adapt) {
  return {.value = bench.Normal({n}),
          .m = bench.From(std::vector<float>(n, 0.0f), {n}),
          .v = bench.From(std::vector<float>(n, 0.0f), {n}),
          .gradient = bench.Normal({n}),
          .norms = bench.Blank({2}, DType::kF64),
          .gradient_scale = 0.25f,
          .learning_rate = 0.01f,
          .beta1 = 0.9f,
          .beta2 = 0.999f,
          .epsilon = 1e-6f,
          .weight_decay = adapt ? 0.1f : 0.0f,
          .correction1 = 0.1f,
          .correction2 = 0.001f,
          .adapt = adapt,
          .compute = ComputeOf(bench, n)};
}

void ReadLamb(Bench& bench, const LambArgs& args, Outputs* outputs) {
  outputs->push_back(bench.Read("value", args.value));
  outputs->push_back(bench.Read("m", args.m));
  outputs->push_back(bench.Read("v", args.v));
  outputs->push_back(bench.Read("norms", args.norms));
  outputs->push_back(ErrorsOfCompute(bench, args.value, args.compute));
}

// The second step's gradient is the first one's direction.
Outputs TwoLambSteps(Bench& bench, int64_t n, bool adapt) {
  LambArgs args = LambOf(bench, n, adapt);
  bench.backend().Lamb(args);
  args.correction1 = 0.19f;
  args.correction2 = 0.001999f;
  bench.backend().Lamb(args);
  Outputs outputs;
  ReadLamb(bench, args, &outputs);
  return outputs;
}

// Weights over such a direction are no finite float; most of the direction is 0.
Outputs LambOfAlmostNoDirection(Bench& bench) {
  constexpr int64_t kSize = 33;
  LambArgs args = LambOf(bench, kSize, true);
  args.value = bench.Normal({kSize}, 1e10f);
  std::vector<float> gradient(kSize, 0.0f);
  gradient[3] = 1e-30f;
  args.gradient = bench.From(gradient, {kSize});
  args.epsilon = 1.0f;
  args.weight_decay = 0.0f;
  bench.backend().Lamb(args);
  Outputs outputs;
  ReadLamb(bench, args, &outputs);
  for (const double value : outputs[0].values) CHECK(std::isfinite(value)) << value;
  return outputs;
}

Outputs TwoAverages(Bench& bench, int64_t n) {
  AverageArgs args = {.value = bench.Normal({n}), .average = bench.Normal({n}), .rate = 0.25f};
  bench.backend().Average(args);
  args.rate = 0.001f;
  bench.backend().Average(args);
  return {bench.Read("value", args.value), bench.Read("average", args.average)};
}

Outputs SwapTwo(Bench& bench, int64_t n) {
  const Tensor a = bench.Normal({n}), b = bench.Normal({n});
  bench.backend().Swap(a, b);
  return {bench.Read("a", a), bench.Read("b", b)};
}

// A cell's parameters in one call: odd sizes, with and without what is optional.
constexpr int64_t kParameterSizes[] = {1, 20000, 7, 4097, 64, 33, 300, 5, 1024, 2, 129, 3};

Outputs SgdOfAll(Bench& bench) {
  std::vector<SgdArgs> all;
  for (const int64_t n : kParameterSizes) {
    all.push_back({.value = bench.Normal({n}),
                   .gradient = bench.Normal({n}),
                   .velocity = n % 2 == 0 ? bench.Normal({n}) : Tensor(),
                   .gradient_scale = 0.5f,
                   .learning_rate = 0.1f,
                   .momentum = n % 2 == 0 ? 0.9f : 0.0f,
                   .weight_decay = n % 3 == 0 ? 0.01f : 0.0f,
                   .compute = ComputeOf(bench, n)});
  }
  bench.backend().SgdAll(all);
  Outputs outputs;
  for (const SgdArgs& args : all) {
    outputs.push_back(bench.Read("value", args.value));
    outputs.push_back(ErrorsOfCompute(bench, args.value, args.compute));
  }
  return outputs;
}

Outputs AdamWOfAll(Bench& bench) {
  std::vector<AdamWArgs> all;
  for (const int64_t n : kParameterSizes) {
    all.push_back({.value = bench.Normal({n}),
                   .gradient = bench.Normal({n}),
                   .m = bench.From(std::vector<float>(n, 0.0f), {n}),
                   .v = bench.From(std::vector<float>(n, 0.0f), {n}),
                   .gradient_scale = 0.25f,
                   .learning_rate = 3e-4f,
                   .beta1 = 0.9f,
                   .beta2 = 0.999f,
                   .epsilon = 1e-8f,
                   .weight_decay = n % 3 == 0 ? 0.1f : 0.0f,
                   .correction1 = 0.1f,
                   .correction2 = 0.001f,
                   .compute = ComputeOf(bench, n)});
  }
  bench.backend().AdamWAll(all);
  Outputs outputs;
  for (const AdamWArgs& args : all) {
    outputs.push_back(bench.Read("value", args.value));
    outputs.push_back(bench.Read("m", args.m));
    outputs.push_back(bench.Read("v", args.v));
    outputs.push_back(ErrorsOfCompute(bench, args.value, args.compute));
  }
  return outputs;
}

Outputs RmsPropOfAll(Bench& bench) {
  std::vector<RmsPropArgs> all;
  for (const int64_t n : kParameterSizes) {
    all.push_back({.value = bench.Normal({n}),
                   .gradient = bench.Normal({n}),
                   .square = bench.From(std::vector<float>(n, 1.0f), {n}),
                   .velocity = n % 2 == 0 ? bench.Normal({n}) : Tensor(),
                   .gradient_scale = 0.5f,
                   .inner_rate = 0.1f,
                   .outer_rate = 1.0f,
                   .decay = 0.9f,
                   .momentum = n % 2 == 0 ? 0.9f : 0.0f,
                   .inside = 1.0f,
                   .weight_decay = n % 3 == 0 ? 0.01f : 0.0f,
                   .compute = ComputeOf(bench, n)});
  }
  bench.backend().RmsPropAll(all);
  Outputs outputs;
  for (const RmsPropArgs& args : all) {
    outputs.push_back(bench.Read("value", args.value));
    outputs.push_back(bench.Read("square", args.square));
    outputs.push_back(ErrorsOfCompute(bench, args.value, args.compute));
  }
  return outputs;
}

Outputs LambOfAll(Bench& bench) {
  std::vector<LambArgs> all;
  for (const int64_t n : kParameterSizes) all.push_back(LambOf(bench, n, n % 3 != 0));
  bench.backend().LambAll(all);
  Outputs outputs;
  for (const LambArgs& args : all) ReadLamb(bench, args, &outputs);
  return outputs;
}

Outputs AveragesOfAll(Bench& bench) {
  std::vector<AverageArgs> all;
  for (const int64_t n : kParameterSizes) {
    all.push_back({.value = bench.Normal({n}), .average = bench.Normal({n}), .rate = 0.1f});
  }
  bench.backend().AverageAll(all);
  Outputs outputs;
  for (const AverageArgs& args : all) outputs.push_back(bench.Read("average", args.average));
  return outputs;
}

Outputs SwapsOfAll(Bench& bench) {
  std::vector<Backend::SwapArgs> all;
  for (const int64_t n : kParameterSizes) all.push_back({bench.Normal({n}), bench.Normal({n})});
  bench.backend().SwapAll(all);
  Outputs outputs;
  for (const Backend::SwapArgs& args : all) {
    outputs.push_back(bench.Read("a", args.a));
    outputs.push_back(bench.Read("b", args.b));
  }
  return outputs;
}

Outputs NormsOfAll(Bench& bench) {
  std::vector<Backend::NormArgs> all;
  for (const int64_t n : kParameterSizes) {
    all.push_back({bench.Normal({n}), bench.Blank({1}, DType::kF64)});
  }
  bench.backend().SquaredNorms(all);
  Outputs outputs;
  for (const Backend::NormArgs& args : all) outputs.push_back(bench.Read("norm", args.result));
  return outputs;
}

// Zero, as gradients are, and any other value; a neighbour keeps what it has.
Outputs FillsOfAll(Bench& bench) {
  std::vector<Tensor> zeros, others;
  for (const int64_t n : kParameterSizes) {
    zeros.push_back(bench.Blank({n}));
    others.push_back(bench.Normal({n}));
  }
  const std::span<const Tensor> filled = std::span<const Tensor>(others).first(others.size() / 2);
  bench.backend().FillAll(zeros, 0.0f);
  bench.backend().FillAll(filled, 2.5f);
  Outputs outputs;
  for (const std::vector<Tensor>* all : {&zeros, &others}) {
    for (const Tensor& tensor : *all) outputs.push_back(bench.Read("filled", tensor));
  }
  return outputs;
}

// There and back, and from each type to itself. The truth comes from base/numbers/bfloat16.h,
// whatever a back end uses.
Outputs ConvertBothWays(Bench& bench, int64_t n) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Ties to even and not; what rounds to infinity; subnormal in either type; signs of zero.
  std::vector<float> values = {
      1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 1.0f + 0x1.01p-8f, -1.0f - 0x1p-8f, kMost,
      -kMost,         0x1p-133f,      0x1.8p-134f,       0x1p-149f,       0.0f,
      -0.0f,          kInfinity,      -kInfinity,        std::nanf("")};
  for (int64_t i = static_cast<int64_t>(values.size()); i < n; ++i) {
    values.push_back(RandomNormal(TestStream(), i));
  }
  values.resize(n);
  const Tensor rounded = bench.ActivationFrom(values, {n});
  if (bench.elements() != Elements::kBfloat16) {
    return {bench.Read("narrow", rounded), bench.Read("wide", rounded),
            bench.Read("narrow copy", rounded), bench.Read("wide copy", rounded)};
  }
  const Tensor narrow = bench.BlankActivation({n}), wide = bench.Blank({n});
  const Tensor narrow_copy = bench.BlankActivation({n}), wide_copy = bench.Blank({n});
  bench.backend().Convert(bench.From(values, {n}), narrow);
  bench.backend().Convert(narrow, wide);
  bench.backend().Convert(narrow, narrow_copy);
  bench.backend().Convert(wide, wide_copy);
  return {bench.Read("narrow", narrow), bench.Read("wide", wide),
          bench.Read("narrow copy", narrow_copy), bench.Read("wide copy", wide_copy)};
}

}  // namespace

void AddOptimizerRows(std::vector<ConformanceRow>& rows) {
  for (const int64_t n : {1, 5, 33, 20000}) {
    rows.push_back({absl::StrCat("Sgd_", n), 1e-6,
                    [=](Bench& b) { return TwoSgdSteps(b, n, Momentum::kNone); }});
    rows.push_back({absl::StrCat("SgdMomentum_", n), 1e-6,
                    [=](Bench& b) { return TwoSgdSteps(b, n, Momentum::kPlain); }});
    rows.push_back({absl::StrCat("SgdNesterov_", n), 1e-6,
                    [=](Bench& b) { return TwoSgdSteps(b, n, Momentum::kNesterov); }});
    for (const bool on : {false, true}) {
      rows.push_back({absl::StrCat(on ? "RmsPropInside_" : "RmsPropOutside_", n), 1e-6,
                      [=](Bench& b) { return TwoRmsPropSteps(b, n, on); }});
      rows.push_back({absl::StrCat(on ? "Lamb_" : "LambPlain_", n), 1e-6,
                      [=](Bench& b) { return TwoLambSteps(b, n, on); }});
    }
    rows.push_back({absl::StrCat("Average_", n), 1e-6, [=](Bench& b) { return TwoAverages(b, n); },
                    0.0, ConformanceRow::Types::kFloat32});
    rows.push_back({absl::StrCat("Swap_", n), 0.0, [=](Bench& b) { return SwapTwo(b, n); }, 0.0,
                    ConformanceRow::Types::kFloat32});
    rows.push_back(
        {absl::StrCat("AdamW_", n), 1e-6, [=](Bench& b) { return TwoAdamWSteps(b, n); }});
    rows.push_back({absl::StrCat("Convert_", n), 0.0,
                    [=](Bench& b) { return ConvertBothWays(b, n); }, 0.0,
                    ConformanceRow::Types::kBfloat16});
  }
  rows.push_back({"FillAll", 0.0, FillsOfAll, 0.0, ConformanceRow::Types::kFloat32});
  rows.push_back({"SgdAll", 1e-6, SgdOfAll});
  rows.push_back({"AdamWAll", 1e-6, AdamWOfAll});
  rows.push_back({"RmsPropAll", 1e-6, RmsPropOfAll});
  rows.push_back({"LambOfAlmostNoDirection", 1e-6, LambOfAlmostNoDirection});
  rows.push_back({"LambAll", 1e-6, LambOfAll});
  rows.push_back({"AverageAll", 1e-6, AveragesOfAll, 0.0, ConformanceRow::Types::kFloat32});
  rows.push_back({"SwapAll", 0.0, SwapsOfAll, 0.0, ConformanceRow::Types::kFloat32});
  rows.push_back({"SquaredNorms", 1e-12, NormsOfAll, 0.0, ConformanceRow::Types::kFloat32});
}

}  // namespace stagecoach::conformance
