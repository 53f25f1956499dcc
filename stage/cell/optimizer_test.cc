// The optimizers against their formulas in double, their slots, and elementwise independence.
#include "stage/cell/optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/optimizers/adafactor.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/lamb.h"
#include "plan/optimizers/rmsprop.h"
#include "plan/optimizers/sgd.h"
#include "stage/backends/kernel_table.h"
#include "stage/backends/reference/reference_backend.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

// Two parameters of a made-up layer 3: a matrix that decays and a bias that does not.
class OptimizerTest : public testing::Test {
 protected:
  void SetUp() override {
    Add("model/0003/mlp.up.weight", {3, 4}, true);
    Add("model/0003/mlp.up.bias", {3}, false);
  }

  void Add(const std::string& name, Shape shape, bool decay) {
    const uint32_t stream = static_cast<uint32_t>(parameters_.size());
    auto parameter = std::make_unique<Parameter>();
    parameter->spec = {name, shape, ParameterSpec::Init::kZeros, 0.0, 0, decay};
    parameter->value =
        TensorOf(*backend_, NormalValues(shape.elements(), stream), DType::kF32, shape);
    parameter->gradient =
        TensorOf(*backend_, NormalValues(shape.elements(), 10 + stream), DType::kF32, shape);
    parameters_.push_back(std::move(parameter));
  }

  std::unique_ptr<Optimizer> Make(const OptimizerSpec& spec) {
    std::vector<Parameter*> borrowed;
    for (const auto& parameter : parameters_) borrowed.push_back(parameter.get());
    absl::StatusOr<std::unique_ptr<Optimizer>> made = MakeOptimizer(spec, borrowed, *backend_);
    CHECK_OK(made.status());
    return *std::move(made);
  }

  std::vector<float> Value(size_t p) { return ValuesOf<float>(*backend_, parameters_[p]->value); }
  std::vector<float> Gradient(size_t p) {
    return ValuesOf<float>(*backend_, parameters_[p]->gradient);
  }

  static std::vector<std::string> Names(const std::vector<OptimizerSlot>& slots) {
    std::vector<std::string> names;
    for (const OptimizerSlot& slot : slots) names.push_back(slot.name);
    return names;
  }

  // Applies the optimizer once with each rate. Compares each value with the formula's, which takes
  // the value before, the scaled gradient and the decay of its parameter.
  void ExpectFollows(const OptimizerSpec& spec, double weight_decay, std::span<const double> rates,
                     double scale, const std::function<double(double, double, double)>& formula) {
    const std::unique_ptr<Optimizer> optimizer = Make(spec);
    const std::vector<std::vector<float>> start = {Value(0), Value(1)};
    for (uint64_t step = 0; step < rates.size(); ++step) optimizer->Apply(step, rates[step], scale);
    for (size_t p = 0; p < 2; ++p) {
      const std::vector<float> gradient = Gradient(p), value = Value(p);
      for (size_t i = 0; i < value.size(); ++i) {
        const double expected =
            formula(start[p][i], scale * gradient[i], p == 0 ? weight_decay : 0.0);
        EXPECT_NEAR(value[i], expected, 2e-6) << "parameter " << p << " element " << i;
      }
    }
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

TEST_F(OptimizerTest, AdamWFollowsItsFormulaOverSeveralSteps) {
  const AdamWSpec spec{0.8, 0.95, 1e-6, 0.1};
  const double rates[] = {0.01, 0.02, 0.005, 0.005};
  ExpectFollows(spec, spec.weight_decay, rates, 0.7, [&](double w, double g, double decay) {
    double m = 0.0, v = 0.0;
    for (int t = 1; t <= 4; ++t) {
      m = spec.beta1 * m + (1 - spec.beta1) * g;
      v = spec.beta2 * v + (1 - spec.beta2) * g * g;
      const double m_hat = m / (1 - std::pow(spec.beta1, t));
      const double v_hat = v / (1 - std::pow(spec.beta2, t));
      w -= rates[t - 1] * (m_hat / (std::sqrt(v_hat) + spec.epsilon) + decay * w);
    }
    return w;
  });
}

// Nesterov's form looks ahead by the new velocity.
TEST_F(OptimizerTest, SgdWithMomentumFollowsTheFormulaOfEachForm) {
  const double rates[] = {0.1, 0.1, 0.1};
  for (const bool nesterov : {false, true}) {
    const SgdSpec spec{.momentum = 0.9, .weight_decay = 0.05, .nesterov = nesterov};
    ExpectFollows(spec, spec.weight_decay, rates, 0.5, [&](double w, double g, double decay) {
      double velocity = 0.0;
      for (const double rate : rates) {
        velocity = spec.momentum * velocity + g;
        w -= rate * ((nesterov ? g + spec.momentum * velocity : velocity) + decay * w);
      }
      return w;
    });
  }
}

// The rate is another in each step: one form scales what the momentum gathers, the other the sum.
TEST_F(OptimizerTest, RmsPropFollowsTheFormulaOfEachForm) {
  using Form = RmsPropSpec::Form;
  const double rates[] = {0.01, 0.05, 0.002};
  for (const Form form : {Form::kTensorFlow, Form::kPyTorch}) {
    for (const double momentum : {0.0, 0.8}) {
      const RmsPropSpec spec{
          .decay = 0.95, .momentum = momentum, .epsilon = 0.1, .weight_decay = 0.05, .form = form};
      const bool tensorflow = form == Form::kTensorFlow;
      ExpectFollows(spec, spec.weight_decay, rates, 0.5, [&](double w, double g, double decay) {
        double velocity = 0.0, square = tensorflow ? 1.0 : 0.0;
        for (const double rate : rates) {
          const double decayed = g + decay * w;
          square = spec.decay * square + (1 - spec.decay) * decayed * decayed;
          const double root =
              tensorflow ? std::sqrt(square + spec.epsilon) : std::sqrt(square) + spec.epsilon;
          velocity = momentum * velocity + (tensorflow ? rate : 1.0) * decayed / root;
          w -= (tensorflow ? 1.0 : rate) * velocity;
        }
        return w;
      });
    }
  }
}

TEST_F(OptimizerTest, RmsPropsMeanOfSquaresBeginsAtOneInTensorFlowsFormAlone) {
  const std::unique_ptr<Optimizer> tensorflow = Make(RmsPropSpec{});
  EXPECT_THAT(Names(tensorflow->slots()),
              ElementsAre("opt/square/0003/mlp.up.weight", "opt/square/0003/mlp.up.bias",
                          "opt/velocity_with_rate/0003/mlp.up.weight",
                          "opt/velocity_with_rate/0003/mlp.up.bias"));
  const auto values = [&](const OptimizerSlot& slot) {
    return ValuesOf<float>(*backend_, slot.value);
  };
  EXPECT_THAT(values(tensorflow->slots()[0]), testing::Each(1.0f));
  EXPECT_THAT(values(tensorflow->slots()[2]), testing::Each(0.0f));
  const std::unique_ptr<Optimizer> pytorch =
      Make(RmsPropSpec{.momentum = 0, .form = RmsPropSpec::Form::kPyTorch});
  EXPECT_THAT(Names(pytorch->slots()),
              ElementsAre("opt/square/0003/mlp.up.weight", "opt/square/0003/mlp.up.bias"));
  EXPECT_THAT(values(pytorch->slots()[0]), testing::Each(0.0f));
}

// A matrix moves by rate * its own length in one step, whatever the gradient's length; a vector by
// AdamW's step.
TEST_F(OptimizerTest, LambScalesTheStepOfAMatrixToItsLength) {
  const LambSpec spec{.weight_decay = 0.1};
  const std::vector<std::vector<float>> start = {Value(0), Value(1)};
  const std::vector<float> gradient = Gradient(1);
  Make(spec)->Apply(0, 0.03, 0.5);
  double moved = 0, length = 0;
  const std::vector<float> matrix = Value(0), vector = Value(1);
  for (size_t i = 0; i < matrix.size(); ++i) {
    moved += std::pow(double{matrix[i]} - start[0][i], 2);
    length += std::pow(double{start[0][i]}, 2);
  }
  EXPECT_NEAR(std::sqrt(moved), 0.03 * std::sqrt(length), 1e-6);
  for (size_t i = 0; i < vector.size(); ++i) {
    const double u = gradient[i] / (std::abs(gradient[i]) + spec.epsilon / 0.5);
    EXPECT_NEAR(vector[i], start[1][i] - 0.03 * u, 1e-6) << i;
  }
}

TEST_F(OptimizerTest, LambTakesTheStepItselfWhereAValueOrADirectionIsZero) {
  backend_->Fill(parameters_[0]->value, 0.0f);
  backend_->Fill(parameters_[1]->gradient, 0.0f);
  const std::vector<float> gradient = Gradient(0), before = Value(1);
  Make(LambSpec{.weight_decay = 0, .adapt_all = true})->Apply(0, 0.03, 1.0);
  const std::vector<float> value = Value(0);
  for (size_t i = 0; i < value.size(); ++i) {
    EXPECT_NEAR(value[i], gradient[i] > 0 ? -0.03 : 0.03, 1e-5) << i;
  }
  EXPECT_EQ(Value(1), before);
}

TEST_F(OptimizerTest, AveragesFollowTheValuesAndChangePlacesWithThem) {
  for (const bool warmup : {false, true}) {
    parameters_.clear();
    SetUp();
    const std::vector<float> start = Value(0);
    std::vector<Parameter*> borrowed;
    for (const auto& parameter : parameters_) borrowed.push_back(parameter.get());
    const std::unique_ptr<Optimizer> optimizer =
        *MakeOptimizer(SgdSpec{}, borrowed, *backend_, {.decay = 0.9, .warmup = warmup});
    EXPECT_THAT(Names(optimizer->slots()),
                ElementsAre("opt/average/0003/mlp.up.weight", "opt/average/0003/mlp.up.bias"));
    optimizer->BeginAverages();
    const auto average = [&] { return ValuesOf<float>(*backend_, optimizer->slots()[0].value); };
    EXPECT_EQ(average(), start);
    std::vector<double> expected(start.begin(), start.end());
    for (int t = 1; t <= 3; ++t) {
      optimizer->Apply(static_cast<uint64_t>(t - 1), 0.1, 1.0);
      const double decay = warmup ? (1.0 + t) / (10.0 + t) : 0.9;
      const std::vector<float> value = Value(0);
      for (size_t i = 0; i < value.size(); ++i) {
        expected[i] = decay * expected[i] + (1 - decay) * value[i];
      }
    }
    const std::vector<float> value = Value(0), averaged = average();
    for (size_t i = 0; i < value.size(); ++i) EXPECT_NEAR(averaged[i], expected[i], 1e-6) << i;
    optimizer->SwapAverages();
    EXPECT_EQ(Value(0), averaged);
    EXPECT_EQ(average(), value);
    optimizer->SwapAverages();
    EXPECT_EQ(Value(0), value);
  }
}

// The running moments of batch norm: weights that are an average are evaluated with an average of
// them.
TEST_F(OptimizerTest, AveragesFollowTheStatesToo) {
  const auto floats = [this](float x) {
    return TensorOf(*backend_, std::vector<float>(3, x), DType::kF32, {3});
  };
  LayerState mean{.spec = {.name = "model/0003/running_mean", .shape = {3}}, .value = floats(8)};
  const std::unique_ptr<Optimizer> optimizer =
      *MakeOptimizer(SgdSpec{}, {parameters_[0].get()}, *backend_, {.decay = 0.75}, {&mean});
  EXPECT_THAT(Names(optimizer->slots()),
              ElementsAre("opt/average/0003/mlp.up.weight", "opt/average/0003/running_mean"));
  optimizer->BeginAverages();
  backend_->Fill(mean.value, 16);  // what a step made of it
  optimizer->Apply(0, 0.1, 1.0);
  const auto average = [&] { return ValuesOf<float>(*backend_, optimizer->slots()[1].value); };
  EXPECT_THAT(average(), testing::Each(10.0F));
  EXPECT_THAT(ValuesOf<float>(*backend_, mean.value), testing::Each(16.0F));
  optimizer->SwapAverages();
  EXPECT_THAT(average(), testing::Each(16.0F));
  EXPECT_THAT(ValuesOf<float>(*backend_, mean.value), testing::Each(10.0F));
}

TEST_F(OptimizerTest, PlainSgdHasNoSlots) {
  const std::unique_ptr<Optimizer> optimizer = Make(SgdSpec{});
  EXPECT_TRUE(optimizer->slots().empty());
  const std::vector<float> before = Value(1), gradient = Gradient(1);
  optimizer->Apply(0, 0.25, 1.0);
  const std::vector<float> after = Value(1);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.25f * gradient[i]);
  }
}

TEST_F(OptimizerTest, SlotsHaveGlobalNamesStartAtZeroAndCountAsOptimizerMemory) {
  const std::unique_ptr<Optimizer> adamw = Make(AdamWSpec{});
  EXPECT_THAT(Names(adamw->slots()),
              ElementsAre("opt/m/0003/mlp.up.weight", "opt/m/0003/mlp.up.bias",
                          "opt/v/0003/mlp.up.weight", "opt/v/0003/mlp.up.bias"));
  for (const OptimizerSlot& slot : adamw->slots()) {
    EXPECT_THAT(ValuesOf<float>(*backend_, slot.value), testing::Each(0.0f)) << slot.name;
  }
  EXPECT_EQ(adamw->slots()[2].value.shape(), Shape({3, 4}));
  const MemoryUse use = backend_->allocator().Use();
  EXPECT_EQ(use.current[static_cast<int>(MemoryKind::kOptimizer)], 4 * 64)
      << "48 and 12 bytes, rounded up to 64";
  const std::unique_ptr<Optimizer> sgd = Make(SgdSpec{0.9, 0.0});
  EXPECT_THAT(Names(sgd->slots()),
              ElementsAre("opt/velocity/0003/mlp.up.weight", "opt/velocity/0003/mlp.up.bias"));
}

TEST_F(OptimizerTest, ASlotThatIsWrittenIsWhatTheNextApplyReads) {
  // What a resume does: slots of a checkpoint into a fresh optimizer, then the step number.
  const std::unique_ptr<Optimizer> first = Make(AdamWSpec{});
  first->Apply(0, 0.01, 1.0);
  const std::vector<float> after_one = Value(0);
  std::vector<std::vector<float>> saved;
  for (const OptimizerSlot& slot : first->slots()) {
    saved.push_back(ValuesOf<float>(*backend_, slot.value));
  }
  first->Apply(1, 0.01, 1.0);
  const std::vector<float> after_two = Value(0);

  const std::unique_ptr<Optimizer> resumed = Make(AdamWSpec{});
  backend_->CopyFromHost(std::as_bytes(std::span(after_one)), parameters_[0]->value);
  const std::vector<OptimizerSlot> slots = resumed->slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    backend_->CopyFromHost(std::as_bytes(std::span(saved[i])), slots[i].value);
  }
  resumed->Apply(1, 0.01, 1.0);
  EXPECT_TRUE(SameBits(Value(0), after_two));
}

TEST_F(OptimizerTest, AParameterIsUpdatedTheSameAloneOrAmongOthers) {
  const std::vector<float> start = Value(1);
  Make(AdamWSpec{})->Apply(7, 0.01, 0.5);
  const std::vector<float> among = Value(1);
  backend_->CopyFromHost(std::as_bytes(std::span(start)), parameters_[1]->value);
  absl::StatusOr<std::unique_ptr<Optimizer>> alone =
      MakeOptimizer(AdamWSpec{}, {parameters_[1].get()}, *backend_);
  ASSERT_TRUE(alone.ok());
  (*alone)->Apply(7, 0.01, 0.5);
  EXPECT_TRUE(SameBits(Value(1), among));
}

TEST_F(OptimizerTest, InBfloat16TheCopyIsTheRoundedMasterAndTheMasterIsAsInFloat32) {
  for (const OptimizerSpec& spec :
       {OptimizerSpec(AdamWSpec{}), OptimizerSpec(SgdSpec{0.9, 0.05}), OptimizerSpec(SgdSpec{}),
        OptimizerSpec(SgdSpec{0.9, 0.05, true}), OptimizerSpec(RmsPropSpec{.weight_decay = 0.1}),
        OptimizerSpec(LambSpec{})}) {
    parameters_.clear();
    SetUp();
    Make(spec)->Apply(0, 0.01, 0.5);
    const std::vector<float> float32[] = {Value(0), Value(1)};
    parameters_.clear();
    SetUp();
    for (const auto& parameter : parameters_) {
      parameter->compute = *MakeTensor(backend_->allocator(), MemoryKind::kParameters, DType::kBF16,
                                       parameter->value.shape());
    }
    Make(spec)->Apply(0, 0.01, 0.5);
    for (size_t p = 0; p < 2; ++p) {
      EXPECT_TRUE(SameBits(Value(p), float32[p]));
      const auto copy = ValuesOf<Bfloat16>(*backend_, parameters_[p]->compute);
      for (size_t i = 0; i < copy.size(); ++i) {
        EXPECT_EQ(copy[i].bits, Bfloat16(float32[p][i]).bits) << "element " << i;
      }
    }
  }
}

TEST_F(OptimizerTest, AParameterThatIsItsOwnCopyIsUpdatedOnce) {
  const std::vector<float> before = Value(1), gradient = Gradient(1);
  for (const auto& parameter : parameters_) parameter->compute = parameter->value;
  Make(SgdSpec{})->Apply(0, 0.25, 1.0);
  const std::vector<float> after = Value(1);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.25f * gradient[i]);
  }
}

TEST_F(OptimizerTest, NoMemoryForSlotsNamesTheSlot) {
  backend_ = MakeReferenceBackend({.memory_limit_bytes = 300});
  parameters_.clear();
  Add("model/0003/mlp.up.weight", {3, 8}, true);
  const absl::Status status =
      MakeOptimizer(AdamWSpec{}, {parameters_[0].get()}, *backend_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("opt/m/0003/mlp.up.weight"));
}

// The paper's algorithms 4 and 5 in double, of one parameter.
struct AdafactorTruth {
  AdafactorSpec spec;
  size_t rows = 1, columns = 1;  // a vector: one row
  bool matrix = false;
  std::vector<double> w, row, column, square, m;

  static double Rms(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value * value;
    return std::sqrt(sum / static_cast<double>(values.size()));
  }

  void Means(const std::vector<double>& g, double decay) {
    double all = 0;
    for (size_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (size_t j = 0; j < columns; ++j) sum += g[i * columns + j] * g[i * columns + j];
      row[i] = decay * row[i] + (1 - decay) * (sum / static_cast<double>(columns) + spec.epsilon1);
      all += row[i];
    }
    for (size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (size_t i = 0; i < rows; ++i) sum += g[i * columns + j] * g[i * columns + j];
      column[j] =
          decay * column[j] + (1 - decay) * (sum / static_cast<double>(rows) + spec.epsilon1);
    }
    for (size_t i = 0; i < w.size(); ++i) {
      square[i] = row[i / columns] * column[i % columns] / (all / static_cast<double>(rows));
    }
  }

  void Step(double t, std::vector<double> g, double rate, double weight_decay) {
    const double decay = 1 - std::pow(t, -spec.decay_power);
    if (spec.relative_step) rate = std::min(rate, 1 / std::sqrt(t));
    if (matrix) Means(g, decay);
    for (size_t i = 0; i < w.size(); ++i) {
      if (!matrix) square[i] = decay * square[i] + (1 - decay) * (g[i] * g[i] + spec.epsilon1);
      g[i] /= std::sqrt(square[i]);
    }
    const double over = spec.clip == 0 ? 1 : std::max(1.0, Rms(g) / spec.clip);
    const double scale = spec.scale_by_parameter ? std::max(spec.epsilon2, Rms(w)) : 1.0;
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = spec.beta1 * m[i] + (1 - spec.beta1) * g[i] / over;
      w[i] -= rate * (scale * m[i] + weight_decay * w[i]);
    }
  }
};

TEST_F(OptimizerTest, AdafactorFollowsThePaperOverSeveralSteps) {
  const double rates[] = {0.01, 0.9, 0.005, 0.02};  // one that a relative step bounds
  for (const AdafactorSpec& spec :
       {AdafactorSpec{}, AdafactorSpec{.beta1 = 0.9, .clip = 0.5, .weight_decay = 0.1},
        AdafactorSpec{.decay_power = 0.5,
        .epsilon1 = 1e-3,
        .clip = 0,
        .relative_step = true,
        .scale_by_parameter = true}}) {
    std::vector<AdafactorTruth> truths;
    for (size_t p = 0; p < 2; ++p) {
      const std::vector<float> start = Value(p);
      AdafactorTruth truth{.spec = spec, .w = {start.begin(), start.end()}};
      truth.matrix = p == 0;
      truth.rows = p == 0 ? 3 : 1;
      truth.columns = start.size() / truth.rows;
      truth.row.resize(truth.rows);
      truth.column.resize(truth.columns);
      truth.square.resize(start.size());
      truth.m.resize(start.size());
      truths.push_back(std::move(truth));
    }
    const std::unique_ptr<Optimizer> optimizer = Make(spec);
    for (uint64_t step = 0; step < 4; ++step) {
      for (size_t p = 0; p < 2; ++p) {
        std::vector<float> gradient =
            NormalValues(p == 0 ? 12 : 3, static_cast<uint32_t>(20 + step));
        backend_->CopyFromHost(std::as_bytes(std::span(gradient)), parameters_[p]->gradient);
        std::vector<double> scaled;
        for (const float g : gradient) scaled.push_back(0.7 * g);
        truths[p].Step(static_cast<double>(step) + 1, scaled, rates[step],
                       p == 0 ? spec.weight_decay : 0.0);
      }
      optimizer->Apply(step, rates[step], 0.7);
    }
    for (size_t p = 0; p < 2; ++p) {
      const std::vector<float> value = Value(p);
      for (size_t i = 0; i < value.size(); ++i) {
        EXPECT_NEAR(value[i], truths[p].w[i], 5e-6) << "parameter " << p << " element " << i;
      }
    }
  }
}

TEST_F(OptimizerTest, AdafactorsStatesHaveShapesOfTheirOwn) {
  Add("model/0003/stack", {2, 3, 5}, true);
  std::map<std::string, Shape> shapes;
  for (const OptimizerSlot& slot : Make(AdafactorSpec{.beta1 = 0.5})->slots()) {
    shapes[slot.name] = slot.value.shape();
  }
  EXPECT_EQ(shapes, (std::map<std::string, Shape>{{"opt/column/0003/mlp.up.weight", {4}},
                                                  {"opt/row/0003/mlp.up.weight", {3}},
                                                  {"opt/m/0003/mlp.up.weight", {3, 4}},
                                                  {"opt/square/0003/mlp.up.bias", {3}},
                                                  {"opt/m/0003/mlp.up.bias", {3}},
                                                  {"opt/column/0003/stack", {2, 5}},
                                                  {"opt/row/0003/stack", {2, 3}},
                                                  {"opt/m/0003/stack", {2, 3, 5}}}));
}

// A back end that has no kernel for any update.
class WithoutUpdates final : public ReferenceBackend {
 public:
  WithoutUpdates() : ReferenceBackend(BackendOptions{}) {}
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes&, DType) override {
    return NoKernel(call, "bare");
  }
};

TEST_F(OptimizerTest, AMissingKernelIsAnErrorThatNamesOperationAndBackEnd) {
  WithoutUpdates bare;
  const auto made = MakeOptimizer(SgdSpec{}, {parameters_[0].get()}, bare);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(made.status().message(),
            "the bare back end has no kernel for operation \"sgd_update\"; use another device");
}

}  // namespace
}  // namespace stagecoach
