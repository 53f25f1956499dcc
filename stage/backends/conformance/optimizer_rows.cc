#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "operations/updates/adafactor_update.h"
#include "operations/updates/adamw_update.h"
#include "operations/updates/lamb_update.h"
#include "operations/updates/rmsprop_update.h"
#include "operations/updates/sgd_update.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/update_calls.h"

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

Tensor ComputeOf(Bench& bench, const Shape& shape) {
  return bench.elements() == Elements::kBfloat16 ? bench.BlankActivation(shape) : Tensor();
}

enum class Start { kZeros, kOnes, kNormal };

// A parameter and its states, with a rounded copy where activations are bfloat16.
UpdateCall CallOf(Bench& bench, std::string operation, Attributes attributes, const Shape& shape,
                  const std::vector<Start>& states) {
  UpdateCall call{
      .operation = std::move(operation), .attributes = std::move(attributes), .adds = {}};
  const Tensor value = bench.Normal(shape), gradient = bench.Normal(shape);
  call.adds = {gradient, value};
  for (const Start start : states) {
    const std::vector<float> same(static_cast<size_t>(shape.elements()),
                                  start == Start::kOnes ? 1.0f : 0.0f);
    call.adds.push_back(start == Start::kNormal ? bench.Normal(shape) : bench.From(same, shape));
  }
  if (const Tensor copy = ComputeOf(bench, shape); copy.valid()) call.adds.push_back(copy);
  return call;
}

// Everything that the calls change, but for what they leave in gradients.
Outputs ResultsOf(Bench& bench, const std::vector<UpdateCall>& calls) {
  Outputs outputs;
  for (const UpdateCall& call : calls) {
    for (size_t i = 1; i < call.adds.size(); ++i) {
      if (call.adds[i].dtype() == DType::kBF16) continue;
      outputs.push_back(bench.Read(i == 1 ? "value" : absl::StrCat("state ", i - 2), call.adds[i]));
    }
    const Tensor& last = call.adds.back();
    outputs.push_back(
        ErrorsOfCompute(bench, call.adds[1], last.dtype() == DType::kBF16 ? last : Tensor()));
  }
  return outputs;
}

Outputs AfterSteps(Bench& bench, const std::vector<UpdateCall>& calls,
                   const std::vector<UpdateNumbers>& steps) {
  const absl::StatusOr<PreparedUpdates> prepared = PreparedUpdates::Prepare(bench.backend(), calls);
  CHECK_OK(prepared.status());
  for (const UpdateNumbers& step : steps) prepared->Run(step);
  return ResultsOf(bench, calls);
}

// Two steps of other rates.
std::vector<UpdateNumbers> TwoSteps(double scale, double first_rate, double second_rate) {
  return {{.applied = 0, .learning_rate = first_rate, .gradient_scale = scale},
          {.applied = 1, .learning_rate = second_rate, .gradient_scale = scale}};
}

enum class Momentum { kNone, kPlain, kNesterov };

Outputs TwoSgdSteps(Bench& bench, int64_t n, Momentum kind) {
  const bool momentum = kind != Momentum::kNone;
  const SgdUpdateAttributes attributes{.momentum = momentum ? 0.9 : 0.0,
                                       .weight_decay = 0.01,
                                       .nesterov = kind == Momentum::kNesterov};
  std::vector<Start> states;
  if (momentum) states.push_back(Start::kNormal);
  return AfterSteps(bench, {CallOf(bench, "sgd_update", ToAttributes(attributes), {n}, states)},
                    TwoSteps(0.5, 0.1, 0.1));
}

UpdateCall AdamWOf(Bench& bench, int64_t n, double weight_decay) {
  return CallOf(bench, "adamw_update",
                ToAttributes(AdamWUpdateAttributes{.weight_decay = weight_decay}), {n},
                {Start::kZeros, Start::kZeros});
}

// One form where it is the inner rate that changes, one where it is the outer.
Outputs TwoRmsPropSteps(Bench& bench, int64_t n, bool inside) {
  const RmsPropUpdateAttributes attributes{
      .decay = 0.9,
      .momentum = inside ? 0.9 : 0.0,
      .epsilon = inside ? 1.0 : 1e-3,
      .weight_decay = inside ? 0.01 : 0.0,
      .form = inside ? RmsPropForm::kTensorFlow : RmsPropForm::kPyTorch};
  std::vector<Start> states = {inside ? Start::kOnes : Start::kZeros};
  if (inside) states.push_back(Start::kNormal);
  return AfterSteps(bench, {CallOf(bench, "rmsprop_update", ToAttributes(attributes), {n}, states)},
                    TwoSteps(0.5, 0.1, 0.05));
}

UpdateCall LambOf(Bench& bench, int64_t n, bool adapt) {
  return CallOf(
      bench, "lamb_update",
      ToAttributes(LambUpdateAttributes{.weight_decay = adapt ? 0.1 : 0.0, .adapt = adapt}), {n},
      {Start::kZeros, Start::kZeros});
}

// The second step's gradient is what the first one left in its place.
Outputs TwoLambSteps(Bench& bench, int64_t n, bool adapt) {
  return AfterSteps(bench, {LambOf(bench, n, adapt)}, TwoSteps(0.25, 0.01, 0.01));
}

// Weights over such a direction are no finite float; most of the direction is 0.
Outputs LambOfAlmostNoDirection(Bench& bench) {
  constexpr int64_t kSize = 33;
  UpdateCall call = LambOf(bench, kSize, true);
  call.attributes = ToAttributes(LambUpdateAttributes{.epsilon = 1.0, .adapt = true});
  std::vector<float> gradient(kSize, 0.0f);
  gradient[3] = 1e-30f;
  call.adds[0] = bench.From(gradient, {kSize});
  call.adds[1] = bench.Normal({kSize}, 1e10f);
  Outputs outputs = AfterSteps(bench, {call}, {{.learning_rate = 0.01, .gradient_scale = 0.25}});
  for (const double value : outputs[0].values) CHECK(std::isfinite(value)) << value;
  return outputs;
}

// A vector, matrices wider and narrower than a block, matrices in a row; what is optional or not.
const Shape kAdafactorShapes[] = {{1},     {33},      {20000},    {1, 1},
                                  {7, 33}, {300, 70}, {3, 20000}, {5, 9, 4}};

UpdateCall AdafactorOf(Bench& bench, AdafactorUpdateAttributes attributes, const Shape& shape) {
  UpdateCall call{
      .operation = "adafactor_update", .attributes = ToAttributes(attributes), .adds = {}};
  const Tensor value = bench.Normal(shape, 0.1f), gradient = bench.Normal(shape);
  call.adds = {gradient, value};
  for (const UpdateState& state : AdafactorStates(attributes.beta1 != 0, shape)) {
    const std::vector<float> start(static_cast<size_t>(state.shape.elements()), 0.0f);
    call.adds.push_back(bench.From(start, state.shape));
  }
  if (const Tensor copy = ComputeOf(bench, shape); copy.valid()) call.adds.push_back(copy);
  return call;
}

// What the first step leaves in the gradient's place is the second one's gradient.
Outputs AdafactorOfAll(Bench& bench, const AdafactorUpdateAttributes& attributes) {
  std::vector<UpdateCall> calls;
  for (const Shape& shape : kAdafactorShapes)
    calls.push_back(AdafactorOf(bench, attributes, shape));
  return AfterSteps(bench, calls, TwoSteps(0.25, 0.01, 0.02));
}

const std::vector<std::pair<const char*, AdafactorUpdateAttributes>> kAdafactors = {
    {"Plain", {}},
    {"Momentum", {.beta1 = 0.9, .clip = 0.5, .weight_decay = 0.1}},
    {"Scaled", {.clip = 0, .relative_step = true, .scale_by_parameter = true}},
};

UpdateCall AverageOf(Bench& bench, int64_t n) {
  return {
      .operation = "average_update", .inputs = {bench.Normal({n})}, .adds = {bench.Normal({n})}};
}

Outputs Averages(Bench& bench, const std::vector<UpdateCall>& calls,
                 const std::vector<double>& rates) {
  const absl::StatusOr<PreparedUpdates> prepared = PreparedUpdates::Prepare(bench.backend(), calls);
  CHECK_OK(prepared.status());
  for (const double rate : rates) prepared->Run({.learning_rate = rate});
  Outputs outputs;
  for (const UpdateCall& call : calls) {
    outputs.push_back(bench.Read("value", call.inputs[0]));
    outputs.push_back(bench.Read("average", call.adds[0]));
  }
  return outputs;
}

Outputs SwapTwo(Bench& bench, int64_t n) {
  const Tensor a = bench.Normal({n}), b = bench.Normal({n});
  bench.backend().Swap(a, b);
  return {bench.Read("a", a), bench.Read("b", b)};
}

// A cell's parameters in one call: odd sizes, with and without what is optional.
constexpr int64_t kParameterSizes[] = {1, 20000, 7, 4097, 64, 33, 300, 5, 1024, 2, 129, 3};

template <typename Make>
std::vector<UpdateCall> CallsOfAll(Make make) {
  std::vector<UpdateCall> calls;
  for (const int64_t n : kParameterSizes) calls.push_back(make(n));
  return calls;
}

Outputs SgdOfAll(Bench& bench) {
  const auto make = [&](int64_t n) {
    const bool even = n % 2 == 0;
    const SgdUpdateAttributes attributes{.momentum = even ? 0.9 : 0.0,
                                         .weight_decay = n % 3 == 0 ? 0.01 : 0.0};
    return CallOf(bench, "sgd_update", ToAttributes(attributes), {n},
                  even ? std::vector<Start>{Start::kNormal} : std::vector<Start>{});
  };
  return AfterSteps(bench, CallsOfAll(make), {{.learning_rate = 0.1, .gradient_scale = 0.5}});
}

Outputs AdamWOfAll(Bench& bench) {
  const auto make = [&](int64_t n) { return AdamWOf(bench, n, n % 3 == 0 ? 0.1 : 0.0); };
  return AfterSteps(bench, CallsOfAll(make), {{.learning_rate = 3e-4, .gradient_scale = 0.25}});
}

Outputs RmsPropOfAll(Bench& bench) {
  const auto make = [&](int64_t n) {
    const bool even = n % 2 == 0;
    const RmsPropUpdateAttributes attributes{.decay = 0.9,
                                             .momentum = even ? 0.9 : 0.0,
                                             .epsilon = 1.0,
                                             .weight_decay = n % 3 == 0 ? 0.01 : 0.0};
    std::vector<Start> states = {Start::kOnes};
    if (even) states.push_back(Start::kNormal);
    return CallOf(bench, "rmsprop_update", ToAttributes(attributes), {n}, states);
  };
  return AfterSteps(bench, CallsOfAll(make), {{.learning_rate = 0.1, .gradient_scale = 0.5}});
}

Outputs LambOfAll(Bench& bench) {
  const auto make = [&](int64_t n) { return LambOf(bench, n, n % 3 != 0); };
  return AfterSteps(bench, CallsOfAll(make), {{.learning_rate = 0.01, .gradient_scale = 0.25}});
}

Outputs AveragesOfAll(Bench& bench) {
  return Averages(bench, CallsOfAll([&](int64_t n) { return AverageOf(bench, n); }), {0.1});
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
    rows.push_back({absl::StrCat("Average_", n), 1e-6,
                    [=](Bench& b) {
                      return Averages(b, {AverageOf(b, n)}, {0.25, 0.001});
                    },
                    0.0, ConformanceRow::Types::kFloat32});
    rows.push_back({absl::StrCat("Swap_", n), 0.0, [=](Bench& b) { return SwapTwo(b, n); }, 0.0,
                    ConformanceRow::Types::kFloat32});
    rows.push_back({absl::StrCat("AdamW_", n), 1e-6, [=](Bench& b) {
                      return AfterSteps(b, {AdamWOf(b, n, 0.1)}, TwoSteps(0.25, 3e-4, 3e-4));
                    }});
    rows.push_back({absl::StrCat("Convert_", n), 0.0,
                    [=](Bench& b) { return ConvertBothWays(b, n); }, 0.0,
                    ConformanceRow::Types::kBfloat16});
  }
  for (const auto& [name, attributes] : kAdafactors) {
    rows.push_back({absl::StrCat("Adafactor", name), 2e-6,
                    [attributes = attributes](Bench& b) { return AdafactorOfAll(b, attributes); }});
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
