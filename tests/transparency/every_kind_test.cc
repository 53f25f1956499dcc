// Networks of all kinds of layers, and those of the zoo, train with the same bits however they are cut and run, and on
// each device as on the reference one.
#include <algorithm>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
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
#include "network/zoo/llama.h"
#include "network/zoo/mlp.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "plan/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"

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
  ModelSpec model;
  friend void PrintTo(const Trained& trained, std::ostream* out) { *out << trained.name; }
};

std::vector<Trained> Networks() {
  return {{"every_kind", EveryKind()},
          {"every_kind_on_images", EveryKindOnImages()},
          {"global_pool", GlobalPoolOnImages()},
          {"llama", LlamaSpec{.layers = 2,
                              .width = 24,
                              .heads = 6,
                              .key_heads = 2,
                              .head_width = 10,
                              .hidden = 33,
                              .context = 13,
                              .vocabulary = 31,
                              .qk_norm = true}},
          {"mlp", MlpNetworkSpec{.image = {7, 5, 3}, .hidden = 41, .layers = 3, .classes = 10}},
          {"resnet", ResnetSpec{.image = {9, 7, 3}, .classes = 5, .depth = 8, .width = 6}}};
}

void CollectKinds(const std::vector<LayerSpec>& layers, std::set<std::string>* kinds) {
  for (const LayerSpec& layer : layers) {
    kinds->insert(layer.kind);
    CollectKinds(layer.layers, kinds);
  }
}

TEST(EveryKindOfLayer, IsInANetworkOfTheseTests) {
  std::set<std::string> listed, known;
  for (const Trained& trained : Networks()) CollectKinds(trained.model.layers, &listed);
  for (const LayerKind* kind : AllLayerKinds()) known.emplace(kind->name());
  EXPECT_EQ(listed, known);
}

// gpt is in transparency_test.cc.
TEST(EveryNetwork, IsOneOfTheseTests) {
  std::set<std::string> trained = {"gpt"}, known;
  for (const Trained& each : Networks()) trained.insert(each.model.kind);
  for (const NetworkKind* kind : AllNetworkKinds()) known.emplace(kind->name());
  EXPECT_EQ(trained, known);
}

struct Machine {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

std::vector<Machine> Machines() {
  std::vector<Machine> machines = {{"reference", [] { return MakeReferenceBackend({}); }}};
#ifdef STAGECOACH_CPU_BACKEND
  machines.push_back({"one thread", [] { return MakeCpuBackend({.threads = 1}); }});
  machines.push_back({"two threads", [] { return MakeCpuBackend({.threads = 2}); }});
#endif
  return machines;
}

class EveryNetworkIn : public testing::TestWithParam<std::tuple<Trained, Precision>> {
 protected:
  static HarnessResult Train(HarnessOptions options, const Machine& machine) {
    options.other_model = std::get<Trained>(GetParam()).model;
    options.batch_size = 5;
    options.micro_batches = 3;
    options.precision = std::get<Precision>(GetParam());
    options.make_backend = machine.make;
    auto result = PipelineHarness(options).Train(3);
    CHECK_OK(result.status());
    return *std::move(result);
  }
};

TEST_P(EveryNetworkIn, HasTheSameBitsInEveryPipeline) {
  const auto network = ExpandModel(std::get<Trained>(GetParam()).model);
  ASSERT_TRUE(network.ok()) << network.status();
  const auto layers = static_cast<int>(network->layers.size());
  for (const Machine& machine : Machines()) {
    const HarnessResult truth = Train({.rematerialization = Rematerialization::kNever}, machine);
    uint64_t order_seed = 0;
    for (const int stages : {1, 2, 3, std::min(layers, 6)}) {
      for (const std::string& schedule : ScheduleNames()) {
        for (const auto kept : {Rematerialization::kAlways, Rematerialization::kNever}) {
          const HarnessResult result = Train({.stages = stages,
                                              .schedule = schedule,
                                              .rematerialization = kept,
                                              .order_seed = ++order_seed},
                                             machine);
          EXPECT_TRUE(result == truth) << machine.name << " K=" << stages << " " << schedule << " "
                                       << RematerializationName(kept);
        }
      }
    }
  }
}

TEST_P(EveryNetworkIn, HasTheReferencesLossesOnEachDevice) {
  const double tolerance = std::get<Precision>(GetParam()) == Precision::kBfloat16 ? 1e-2 : 1e-5;
  const HarnessResult reference = Train({}, Machines()[0]);
  std::vector<HarnessResult> others;
  for (size_t i = 1; i < Machines().size(); ++i) others.push_back(Train({}, Machines()[i]));
  for (const HarnessResult& other : others) {
    EXPECT_TRUE(other == others[0]) << "threads";
    for (size_t step = 0; step < reference.losses.size(); ++step) {
      const double loss = reference.losses[step], norm = reference.squared_norms[step];
      EXPECT_NEAR(other.losses[step], loss, tolerance * loss);
      EXPECT_NEAR(other.squared_norms[step], norm, 10 * tolerance * norm);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EveryNetworkIn,
                         testing::Combine(testing::ValuesIn(Networks()),
                                          testing::Values(Precision::kFloat32,
                                                          Precision::kBfloat16)),
                         [](const auto& info) {
                           return std::get<Trained>(info.param).name + "_" +
                                  PrecisionName(std::get<Precision>(info.param));
                         });

}  // namespace
}  // namespace stagecoach
