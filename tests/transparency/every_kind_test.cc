// Networks of all kinds of layers train with the same bits however they are cut and run, and on each device as on the
// reference one.
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layer_kinds.h"
#include "network/layers/attention.h"
#include "network/layers/average_pool.h"
#include "network/layers/batch_norm.h"
#include "network/layers/convolution.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/flatten.h"
#include "network/layers/gelu.h"
#include "network/layers/global_pool.h"
#include "network/layers/layer_norm.h"
#include "network/layers/linear.h"
#include "network/layers/max_pool.h"
#include "network/layers/mlp.h"
#include "network/layers/relu.h"
#include "network/layers/residual.h"
#include "network/layers/rms_norm.h"
#include "network/layers/silu.h"
#include "network/layers/swiglu.h"
#include "network/network_kinds.h"
#include "network/zoo/sequence.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

// Large enough that two threads share the work, odd enough that tiles have remainders.
SequenceSpec EveryKind() {
  const LayerSpec llama = AttentionSpec{.heads = 4,
                                        .key_heads = 2,
                                        .head_width = 10,
                                        .rotary_theta = 100,
                                        .qk_norm = true,
                                        .bias = false};
  const auto residual = [](std::vector<LayerSpec> layers) -> LayerSpec {
    return ResidualSpec{std::move(layers)};
  };
  return {
      .width = 36,
      .context = 19,
      .vocabulary = 67,
      .layers = {EmbeddingSpec{.dropout = 0.1, .position = false},
                 residual({RmsNormSpec{.epsilon = 1e-6}, llama}),
                 residual({RmsNormSpec{}, SwigluSpec{.hidden = 49}, DropoutSpec{.rate = 0.1}}),
                 residual({LayerNormSpec{}, AttentionSpec{.heads = 4, .dropout = 0.1}}),
                 residual({LayerNormSpec{}, MlpSpec{.hidden = 50}}),
                 residual({LinearSpec{.out = 41}, SiluSpec{}, LinearSpec{.out = 36}}),
                 residual({LinearSpec{.out = 41}, ReluSpec{}, LinearSpec{.out = 36}}), GeluSpec{},
                 BatchNormSpec{}, RmsNormSpec{}, LinearSpec{.out = 67, .bias = false}}};
}

// An image whose extents are no multiple of what kernels take at once.
SequenceSpec EveryKindOnImages() {
  const ConvolutionSpec same{.out = 12, .kernel = {3}, .padding = {1}};
  return {.layers = {ConvolutionSpec{.out = 12, .kernel = {3, 5}, .padding = {1, 2}},
                     ResidualSpec{{same, ReluSpec{}, same}},
                     ConvolutionSpec{
                         .out = 20, .kernel = {3}, .stride = {2, 1}, .groups = 4, .bias = false},
                     MaxPoolSpec{.kernel = {3}, .stride = {1, 2}, .padding = {1}}, ReluSpec{},
                     AveragePoolSpec{.kernel = {2}, .stride = {1}}, FlattenSpec{},
                     DropoutSpec{.rate = 0.1}, LinearSpec{.out = 7}},
          .image = {13, 11, 3},
          .classes = 7};
}
SequenceSpec GlobalPoolOnImages() {
  return {.layers = {ConvolutionSpec{.out = 9, .kernel = {3}, .dilation = {2}}, ReluSpec{},
                     GlobalPoolSpec{}, LinearSpec{.out = 5}},
          .image = {9, 8, 2},
          .classes = 5};
}

struct Trained {
  std::string name;
  SequenceSpec list;
  friend void PrintTo(const Trained& trained, std::ostream* out) { *out << trained.name; }
};

std::vector<Trained> Lists() {
  return {{"every_kind", EveryKind()},
          {"every_kind_on_images", EveryKindOnImages()},
          {"global_pool", GlobalPoolOnImages()}};
}

void CollectKinds(const std::vector<LayerSpec>& layers, std::set<std::string>* kinds) {
  for (const LayerSpec& layer : layers) {
    kinds->insert(layer.kind);
    CollectKinds(layer.layers, kinds);
  }
}

TEST(EveryKindOfLayer, IsInANetworkOfTheseTests) {
  std::set<std::string> listed, known;
  for (const Trained& trained : Lists()) CollectKinds(trained.list.layers, &listed);
  for (const LayerKind* kind : AllLayerKinds()) known.emplace(kind->name());
  EXPECT_EQ(listed, known);
}

class EveryKindIn : public testing::TestWithParam<std::tuple<Trained, Precision>> {
 protected:
  static Network Expanded() {
    auto network = ExpandModel(std::get<Trained>(GetParam()).list, std::get<Precision>(GetParam()));
    CHECK_OK(network.status());
    return *std::move(network);
  }
};

TEST_P(EveryKindIn, HasTheSameBitsInEveryPipeline) { ExpectTheSameBitsInEveryPipeline(Expanded()); }

TEST_P(EveryKindIn, HasTheReferencesLossesOnEachDevice) { ExpectTheReferencesLosses(Expanded()); }

INSTANTIATE_TEST_SUITE_P(Lists, EveryKindIn,
                         testing::Combine(testing::ValuesIn(Lists()),
                                          testing::Values(Precision::kFloat32,
                                                          Precision::kBfloat16)),
                         [](const auto& info) {
                           return std::get<Trained>(info.param).name + "_" +
                                  PrecisionName(std::get<Precision>(info.param));
                         });

}  // namespace
}  // namespace stagecoach
