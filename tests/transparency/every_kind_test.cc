// A network of all kinds of layers trains with the same bits however it is cut and run, and on each device as on
// the reference one.
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layer_kinds.h"
#include "network/layers/attention.h"
#include "network/layers/batch_norm.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/gelu.h"
#include "network/layers/layer_norm.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/relu.h"
#include "network/layers/residual.h"
#include "network/layers/rms_norm.h"
#include "network/layers/silu.h"
#include "network/layers/swiglu.h"
#include "network/zoo/sequence.h"
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

void CollectKinds(const std::vector<LayerSpec>& layers, std::set<std::string>* kinds) {
  for (const LayerSpec& layer : layers) {
    kinds->insert(layer.kind);
    CollectKinds(layer.layers, kinds);
  }
}

TEST(EveryKindOfLayer, IsInTheNetworkOfTheseTests) {
  std::set<std::string> listed, known;
  CollectKinds(EveryKind().layers, &listed);
  for (const LayerKind* kind : AllLayerKinds()) known.emplace(kind->name());
  EXPECT_EQ(listed, known);
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

class EveryKindOfLayerIn : public testing::TestWithParam<Precision> {
 protected:
  static HarnessResult Train(HarnessOptions options, const Machine& machine) {
    options.other_model = EveryKind();
    options.batch_size = 5;
    options.micro_batches = 3;
    options.precision = GetParam();
    options.make_backend = machine.make;
    auto result = PipelineHarness(options).Train(3);
    CHECK_OK(result.status());
    return *std::move(result);
  }
};

TEST_P(EveryKindOfLayerIn, HasTheSameBitsInEveryPipeline) {
  for (const Machine& machine : Machines()) {
    const HarnessResult truth = Train({.rematerialization = Rematerialization::kNever}, machine);
    uint64_t order_seed = 0;
    for (const int stages : {1, 2, 3, 5}) {
      for (const auto schedule : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
        for (const auto kept : {Rematerialization::kAlways, Rematerialization::kNever}) {
          const HarnessResult result = Train({.stages = stages,
                                              .schedule = schedule,
                                              .rematerialization = kept,
                                              .order_seed = ++order_seed},
                                             machine);
          EXPECT_TRUE(result == truth)
              << machine.name << " K=" << stages << " " << ScheduleKindName(schedule) << " "
              << RematerializationName(kept);
        }
      }
    }
  }
}

TEST_P(EveryKindOfLayerIn, HasTheReferencesLossesOnEachDevice) {
  const double tolerance = GetParam() == Precision::kBfloat16 ? 1e-2 : 1e-5;
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

INSTANTIATE_TEST_SUITE_P(Precisions, EveryKindOfLayerIn,
                         testing::Values(Precision::kFloat32, Precision::kBfloat16),
                         [](const auto& info) { return std::string(PrecisionName(info.param)); });

}  // namespace
}  // namespace stagecoach
