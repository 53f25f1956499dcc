// How many launches a transformer block takes, and the end of a step: a small network is bound by
// them.
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/optimizers/adamw.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/cell/cell.h"
#include "stage/cell/optimizer.h"
#include "stage/layers/layer_runner.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

struct Counts {
  int forward = 0, backward = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};
void PrintTo(const Counts& counts, std::ostream* out) {
  *out << counts.forward << " forward, " << counts.backward << " backward";
}

// Of one block of a GPT: two residuals, around attention and around the MLP. A product is one.
Counts LaunchesOfBlock(Precision precision, double dropout) {
  constexpr int64_t kContext = 4, kSequences = 2, kLaunchWidth = 16;
  const GptSpec spec = {.layers = 1,
                        .width = kLaunchWidth,
                        .heads = 2,
                        .context = kContext,
                        .vocabulary = 8,
                        .dropout = dropout};
  const Network network = *ExpandNetwork(spec, precision);
  cuda::EmulatedBackend backend({});
  const DType dtype = ComputeDType(precision);
  Counts counts;
  for (const NetworkLayer& expanded : network.layers) {
    if (!expanded.label.starts_with("residual")) continue;
    const std::unique_ptr<LayerRunner> layer = *LayerRunner::Create(network, expanded, backend);
    for (Parameter& parameter : layer->parameters()) {
      backend.Fill(parameter.value, 0.5f);
      if (dtype == DType::kBF16) backend.Convert(parameter.value, parameter.compute);
    }
    const auto filled = [&](float value) {
      const Tensor tensor =
          TensorOf<float>(backend, {}, dtype, {kSequences * kContext, kLaunchWidth});
      backend.Fill(tensor, value);
      return tensor;
    };
    Tensors x = {filled(1.0f)}, dy = {filled(1.0f)};
    const ForwardContext context = {
        .seed = 1, .micro_batch = MicroBatchId(0), .sequences = kSequences};
    Stash stash;
    const int64_t start = backend.Launches();
    CHECK_OK(layer->Forward(std::move(x), context, &stash).status());
    const int64_t middle = backend.Launches();
    CHECK_OK(layer->Backward(std::move(dy), std::move(stash)).status());
    counts.forward += static_cast<int>(middle - start);
    counts.backward += static_cast<int>(backend.Launches() - middle);
  }
  return counts;
}

// Forward: 2 layer norms, 4 products with their bias, GELU and residual, attention.
// Backward: 4 + 4 products with the GELU's gradient, 4 bias gradients of 2 launches, attention of
// 2, 2 layer norms of 2, the residual in the first of them.
TEST(LaunchCount, OfATransformerBlockInBfloat16) {
  EXPECT_EQ(LaunchesOfBlock(Precision::kBfloat16, 0.0), (Counts{7, 22}));
}

// GELU and its gradient are kernels of their own.
TEST(LaunchCount, OfATransformerBlockInFloat32) {
  EXPECT_EQ(LaunchesOfBlock(Precision::kFloat32, 0.0), (Counts{8, 23}));
}

// A dropout behind each of the two branches, hence a sum of its own in forward.
TEST(LaunchCount, OfATransformerBlockWithDropout) {
  EXPECT_EQ(LaunchesOfBlock(Precision::kBfloat16, 0.1), (Counts{11, 24}));
}

// However many parameters there are: norms, update, gradients to zero.
TEST(LaunchCount, OfTheEndOfAStep) {
  for (const int layers : {1, 3}) {
    const GptSpec spec = {.layers = layers, .width = 16, .heads = 2, .context = 4, .vocabulary = 8};
    const Network network = *ExpandNetwork(spec, Precision::kBfloat16);
    cuda::EmulatedBackend backend({});
    const int last = static_cast<int>(network.layers.size());
    const std::unique_ptr<Cell> cell = *Cell::Create(network, 0, last, 1, 1, backend);
    const auto optimizer = *MakeOptimizer(AdamWSpec{}, cell->parameters(), backend);
    const auto launches = [&](auto&& call) {
      const int64_t before = backend.Launches();
      call();
      return backend.Launches() - before;
    };
    EXPECT_EQ(launches([&] { cell->ZeroGradients(); }), 1);
    EXPECT_EQ(launches([&] { CHECK_OK(cell->LayerSquaredGradientNorms().status()); }), 2);
    EXPECT_EQ(launches([&] { optimizer->Apply(0, 0.1, 1.0); }), 1);
  }
}

}  // namespace
}  // namespace stagecoach
