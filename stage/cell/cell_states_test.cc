// States of layers in a cell: a batch norm's running moments are those of the mini-batch, however
// its micro-batches are run, and change with an applied step alone.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/norms.h"
#include "network/network_builder.h"
#include "network/objective_kind.h"
#include "stage/cell/cell.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

constexpr int64_t kPlaces = 3, kNormed = 4;
constexpr double kMomentum = 0.25;
const std::vector<int64_t> kUneven = {2, 2, 1};  // micro-batches of 5 samples

Network NormAlone() {
  NetworkBuilder builder(0, {});
  const WireId x = builder.Input("x", ActivationType({kPlaces, kNormed}), 0);
  const WireId targets =
      builder.Input("targets", {Element::kIds, Leading::kSamples, {kPlaces}}, kNormed);
  const auto y = builder.Add(BatchNormSpec{.momentum = kMomentum}, "layer", x);
  CHECK_OK(y.status());
  auto network = builder.Finish({.output = *y, .targets = targets}, "network");
  CHECK_OK(network.status());
  CHECK_OK(SetObjective({}, "network", &*network));
  return *std::move(network);
}

enum class Passes { kKept, kRecomputed, kSplit };

class CellStates : public testing::Test {
 protected:
  static constexpr int64_t kSample = kPlaces * kNormed;

  void SetUp() override {
    auto cell = Cell::Create(network_, 0, 1, 5, static_cast<int>(kUneven.size()), *backend_);
    CHECK_OK(cell.status());
    cell_ = *std::move(cell);
    cell_->ZeroGradients();
  }

  static std::vector<float> MiniBatch(int step) {
    std::vector<float> x = NormalValues(5 * kSample, static_cast<uint32_t>(10 + step));
    for (size_t i = 0; i < x.size(); ++i) x[i] = 2.0f + static_cast<float>(i % kNormed) * x[i];
    return x;
  }

  static ForwardContext ContextOf(int step, size_t m) {
    return {.step = static_cast<uint64_t>(step),
            .micro_batch = MicroBatchId(static_cast<int>(m)),
            .sequences = kUneven[m]};
  }

  Tensor PartOf(const std::vector<float>& values, size_t m) {
    const int64_t begin = 2 * static_cast<int64_t>(m), end = begin + kUneven[m];
    return TensorOf(
        *backend_,
        std::vector<float>(values.begin() + begin * kSample, values.begin() + end * kSample),
        DType::kF32, {kUneven[m] * kPlaces, kNormed});
  }

  // All forwards, then the backwards.
  void Step(int step, Passes run) {
    const std::vector<float> x = MiniBatch(step);
    for (size_t m = 0; m < kUneven.size(); ++m) {
      ASSERT_TRUE(
          cell_->Forward({PartOf(x, m)}, ContextOf(step, m), run != Passes::kRecomputed).ok());
    }
    for (size_t m = 0; m < kUneven.size(); ++m) {
      const MicroBatchId id(static_cast<int>(m));
      if (run == Passes::kRecomputed) {
        ASSERT_TRUE(cell_->Recompute(id).ok());
      }
      if (run == Passes::kSplit) {
        ASSERT_TRUE(cell_->BackwardInput(id, {PartOf(x, m)}).ok());
      } else {
        ASSERT_TRUE(cell_->Backward(id, {PartOf(x, m)}).ok());
      }
    }
    if (run != Passes::kSplit) return;
    for (size_t m = 0; m < kUneven.size(); ++m) {
      ASSERT_TRUE(cell_->BackwardWeight(MicroBatchId(static_cast<int>(m))).ok());
    }
  }
  void Apply() {
    ASSERT_TRUE(cell_->CommitStates().ok());
    cell_->ZeroGradients();
  }

  std::vector<std::vector<float>> States() {
    std::vector<std::vector<float>> all;
    for (LayerState* state : cell_->states())
      all.push_back(ValuesOf<float>(*backend_, state->value));
    return all;
  }

  // What the definition says: of the whole mini-batch, in double.
  static void Fold(const std::vector<float>& x, std::vector<double>* mean,
                   std::vector<double>* variance) {
    const auto count = static_cast<double>(x.size() / kNormed);
    for (size_t c = 0; c < kNormed; ++c) {
      double sum = 0, squares = 0;
      for (size_t i = c; i < x.size(); i += kNormed) sum += x[i];
      for (size_t i = c; i < x.size(); i += kNormed) {
        squares += (x[i] - sum / count) * (x[i] - sum / count);
      }
      (*mean)[c] += kMomentum * (sum / count - (*mean)[c]);
      (*variance)[c] += kMomentum * (squares / (count - 1) - (*variance)[c]);
    }
  }

  const Network network_ = NormAlone();
  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
  std::unique_ptr<Cell> cell_;
};

TEST_F(CellStates, AreTheMomentsOfTheWholeMiniBatchAndSkippedStepsLeaveThemAlone) {
  std::vector<double> mean(kNormed, 0.0), variance(kNormed, 1.0);
  for (int step = 0; step < 5; ++step) {
    Step(step, step == 2 ? Passes::kSplit : Passes::kRecomputed);
    if (step == 3) {  // not finite, say
      const auto before = States();
      cell_->ZeroGradients();
      EXPECT_EQ(States(), before);
      continue;
    }
    Apply();
    Fold(MiniBatch(step), &mean, &variance);
  }
  const auto states = States();
  for (size_t c = 0; c < kNormed; ++c) {
    EXPECT_NEAR(states[0][c], mean[c], 1e-6 * std::abs(mean[c])) << "channel " << c;
    EXPECT_NEAR(states[1][c], variance[c], 1e-6 * variance[c]) << "channel " << c;
  }
}

TEST_F(CellStates, HaveTheSameBitsHoweverTheMicroBatchesAreRun) {
  std::vector<std::vector<std::vector<float>>> all;
  for (const Passes run : {Passes::kKept, Passes::kRecomputed, Passes::kSplit}) {
    SetUp();
    Step(0, run);
    Apply();
    all.push_back(States());
  }
  EXPECT_EQ(all[1], all[0]);
  EXPECT_EQ(all[2], all[0]);
}

TEST_F(CellStates, AreWhatAnEvaluationReadsAndDoesNotChange) {
  Step(0, Passes::kKept);
  Apply();
  const auto before = States();
  const std::vector<float> x = MiniBatch(1);
  const auto y = cell_->Evaluate({PartOf(x, 0)}, ContextOf(1, 0));
  ASSERT_TRUE(y.ok()) << y.status();
  const std::vector<float> values = ValuesOf<float>(*backend_, y->front());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = i % kNormed;
    const double expected = (x[i] - before[0][c]) / std::sqrt(before[1][c] + 1e-5);
    EXPECT_NEAR(values[i], expected, 1e-5 * (1 + std::abs(expected))) << i;
  }
  EXPECT_EQ(States(), before);
  Step(1, Passes::kKept);
  Apply();
  const auto without = States();
  SetUp();
  Step(0, Passes::kKept);
  Apply();
  Step(1, Passes::kKept);
  ASSERT_TRUE(cell_->Evaluate({PartOf(x, 0)}, ContextOf(1, 0)).ok());
  Apply();
  EXPECT_EQ(States(), without) << "between a step and its apply";
}

}  // namespace
}  // namespace stagecoach
