// What is alive inside a layer while it works, and what happens when memory runs out.
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "stage/layers/layer_runner.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

// Peaks that the backward of an mlp (layer 1) and an attention (layer 2) reach, in activations of
// n * d floats: the stash, the gradient that comes in, and what is computed.
class LayerMemoryTest : public testing::Test {
 protected:
  static constexpr int64_t kActivation = 64 * 16 * 4;

  void Prepare(int index) {
    layer_ = *LayerRunner::Create(network_, network_.layers[index], *backend_);
    Tensors inputs{TensorOf(*backend_, NormalValues(64 * 16, 1), DType::kF32, {64, 16})};
    dy_ = *layer_->Forward(std::move(inputs), {.micro_batch = MicroBatchId(0), .sequences = 8},
                           &stash_);
    backend_->allocator().ResetPeak();
  }
  int64_t Peak() const {
    return backend_->allocator().Use().peak[static_cast<int>(MemoryKind::kActivations)];
  }

  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
  const Network network_ = ExpandOrDie(SequenceSpec{
      16,
      8,
      11,
      {{EmbeddingSpec{}}, {MlpSpec{64}}, {AttentionSpec{1, 0.0}}, {LinearSpec{11, false}}}});
  std::unique_ptr<LayerRunner> layer_;
  Stash stash_;
  Tensors dy_;
};

TEST_F(LayerMemoryTest, JointBackwardFreesTheStashAsItGoes) {
  Prepare(1);
  ASSERT_TRUE(layer_->Backward(std::move(dy_), std::move(stash_)).ok());
  // x, pre, activation, dy; then the activation makes room for d_pre.
  EXPECT_EQ(Peak(), (1 + 4 + 4 + 1) * kActivation);
  Prepare(2);
  ASSERT_TRUE(layer_->Backward(std::move(dy_), std::move(stash_)).ok());
  // x, attended, d_attended, qkv, d_qkv and log_sum_exp.
  EXPECT_EQ(Peak(), (1 + 1 + 1 + 3 + 3) * kActivation + 64 * 4);
}

TEST_F(LayerMemoryTest, SplitBackwardKeepsWhatTheWeightPartNeeds) {
  Prepare(1);
  ASSERT_TRUE(layer_->BackwardInput(std::move(dy_), &stash_).ok());
  EXPECT_EQ(Peak(), (1 + 4 + 4 + 1 + 4) * kActivation) << "pre is gone before there is dx";
  EXPECT_EQ(StashBytes(stash_), (1 + 4 + 4 + 1) * kActivation) << "x, d_pre, activation, dy";
  stash_ = Stash();
  Prepare(2);
  ASSERT_TRUE(layer_->BackwardInput(std::move(dy_), &stash_).ok());
  EXPECT_EQ(StashBytes(stash_), (1 + 3 + 1 + 1) * kActivation) << "x, d_qkv, attended, dy";
}

// A sum of its own would be in the branch's buffer: the trunk costs no memory beside the branch.
TEST(ResidualMemoryTest, PeaksAreThoseOfTheBranchAndItsTrunk) {
  constexpr int64_t kActivation = 64 * 16 * 4, kStatistics = 2 * 64 * 4;
  const auto backend = MakeReferenceBackend({});
  const Network network = ExpandOrDie(GptSpec{1, 16, 2, 8, 11, 0.0});
  const auto layer =
      *LayerRunner::Create(network, network.layers[2], *backend);  // layer norm and mlp
  const auto activation = [&] {
    return TensorOf(*backend, NormalValues(64 * 16, 1), DType::kF32, {64, 16});
  };
  const auto peak_of = [&](const auto& run) {
    run();
    const int64_t peak =
        backend->allocator().Use().peak[static_cast<int>(MemoryKind::kActivations)];
    backend->allocator().ResetPeak();
    return peak;
  };
  const ForwardContext context = {.micro_batch = MicroBatchId(0), .sequences = 8};
  // x; normalized, pre and activation, of which the first two make room for y.
  EXPECT_EQ(peak_of([&] { ASSERT_TRUE(layer->Forward({activation()}, context, nullptr).ok()); }),
            (1 + 1 + 4 + 4) * kActivation);
  Stash stash, split;
  EXPECT_EQ(peak_of([&] { ASSERT_TRUE(layer->Forward({activation()}, context, &stash).ok()); }),
            (1 + 1 + 4 + 4 + 1) * kActivation + kStatistics)
      << "x, the stash of the mlp, y";
  // The same and dy; then d_pre for the activation and dx of the mlp for x of the mlp.
  EXPECT_EQ(peak_of([&] { ASSERT_TRUE(layer->Backward({activation()}, std::move(stash)).ok()); }),
            (1 + 1 + 4 + 4 + 1) * kActivation + kStatistics);
  ASSERT_TRUE(layer->Forward({activation()}, context, &split).ok());
  backend->allocator().ResetPeak();
  // The stash, dy and d_pre; pre makes room for the gradients behind it.
  EXPECT_EQ(peak_of([&] { ASSERT_TRUE(layer->BackwardInput({activation()}, &split).ok()); }),
            (1 + 1 + 4 + 4 + 1 + 4) * kActivation + kStatistics);
}

TEST(LayerErrorTest, MemoryThatRunsOutIsAnErrorNotACrash) {
  const Network network = ExpandOrDie(GptSpec{1, 16, 2, 8, 11, 0.1});
  // Enough for the parameters and gradients of the attention, not for what it computes.
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({.memory_limit_bytes = 20'000});
  absl::StatusOr<std::unique_ptr<LayerRunner>> layer =
      LayerRunner::Create(network, network.layers[1], *backend);
  ASSERT_TRUE(layer.ok()) << layer.status();
  const Tensor x = TensorOf(*backend, NormalValues(64 * 16, 1), DType::kF32, {64, 16});
  Stash stash;
  const absl::StatusOr<Tensors> y =
      (*layer)->Forward({x}, {.micro_batch = MicroBatchId(0), .sequences = 8}, &stash);
  EXPECT_EQ(y.status().code(), absl::StatusCode::kResourceExhausted) << y.status();
  EXPECT_EQ(LayerRunner::Create(network, network.layers[1], *backend).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace stagecoach
