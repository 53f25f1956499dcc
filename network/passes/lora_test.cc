// What adapters add to a network: parameters, calls, gradients.
#include "network/passes/lora.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/lists/follow_testing.h"
#include "network/names/network_text.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/resnet.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Part = ParameterSpec::Part;

Network Llama(bool tied = false) {
  return ExpandedOf(LlamaSpec{.layers = 2,
                              .width = 8,
                              .heads = 4,
                              .key_heads = 2,
                              .hidden = 6,
                              .context = 6,
                              .vocabulary = 7,
                              .tied_embeddings = tied});
}

Network Gpt() {
  return ExpandedOf(
      GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 6, .vocabulary = 7, .dropout = 0.1});
}

Network With(const LoraSpec& spec, Network network) {
  absl::StatusOr<Network> adapted = AddAdapters(std::move(network), spec, "training.lora");
  CHECK_OK(adapted.status());
  for (const NetworkLayer& layer : adapted->layers) ExpectListsCanBeFollowed(*layer.lists);
  return *std::move(adapted);
}

std::string Refusal(const LoraSpec& spec, Network network) {
  const absl::Status status = AddAdapters(std::move(network), spec, "training.lora").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

// "name [shape]" of parameters that are trained.
std::vector<std::string> Trained(const NetworkLayer& layer) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : layer.parameters) {
    EXPECT_EQ(parameter.trained, parameter.part == Part::kAdapter) << parameter.name;
    if (parameter.trained) {
      names.push_back(absl::StrCat(parameter.name, " ", parameter.shape.ToString()));
    } else {
      EXPECT_EQ(parameter.part, Part::kBase) << parameter.name;
    }
  }
  return names;
}

std::vector<std::string> Forward(const NetworkLayer& layer) {
  return OperationsOf(layer.lists->forward);
}

TEST(Lora, QueryAndValueHaveAdaptersUnlessAJobNamesOthers) {
  const Network network = With({.rank = 2, .alpha = 4}, Llama());
  EXPECT_THAT(Trained(network.layers[0]), IsEmpty());
  EXPECT_THAT(Trained(network.layers[1]),
              ElementsAre("model/0001/attention.query.lora_a.weight [2, 8]",
                          "model/0001/attention.query.lora_b.weight [8, 2]",
                          "model/0001/attention.value.lora_a.weight [2, 8]",
                          "model/0001/attention.value.lora_b.weight [4, 2]"));
  EXPECT_THAT(Trained(network.layers[2]), IsEmpty());
  EXPECT_THAT(
      Forward(network.layers[1]),
      ElementsAre("rms_norm", "linear", "linear", "scale", "linear", "linear", "scale", "linear",
                  "slice_gradient", "concatenate", "add", "rotary", "attention", "linear"));
}

TEST(Lora, ABeginsNormallyDistributedAndBWithZeros) {
  const Network network = With({.rank = 2}, Llama());
  const std::vector<ParameterSpec>& parameters = network.layers[1].parameters;
  const std::vector<ParameterSpec> before = Llama().layers[1].parameters;
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(parameters[i].name, before[i].name);
    EXPECT_EQ(parameters[i].index, before[i].index);
  }
  const ParameterSpec &a = parameters[before.size()], &b = parameters[before.size() + 1];
  EXPECT_EQ(a.init, ParameterSpec::Init::kNormal);
  EXPECT_DOUBLE_EQ(a.init_stddev, 1 / std::sqrt(3.0 * 8));
  EXPECT_EQ(b.init, ParameterSpec::Init::kZeros);
  EXPECT_TRUE(a.decay && b.decay);
}

TEST(Lora, OnlyAdaptersAndWhatLiesBehindThemHaveGradients) {
  const Network network = With({.rank = 2, .targets = {"0003/attention.query"}}, Llama());
  EXPECT_EQ(FirstTrainedLayer(network), 3);
  EXPECT_THAT(OperationsOf(network.layers[1].lists->backward), IsEmpty());
  for (const NetworkLayer& layer : network.layers) {
    for (size_t i = 0; i < layer.parameters.size(); ++i) {
      EXPECT_EQ(layer.lists->parameter_gradients[i].valid(), layer.parameters[i].trained)
          << layer.parameters[i].name;
    }
  }
  EXPECT_THAT(WiresOfCell(network, 3, 6).sent_gradients, IsEmpty());
}

TEST(Lora, AWholeWeightStandsForItsProjections) {
  const Network network = With({.rank = 2, .targets = {"qkv", "query"}}, Llama());
  EXPECT_THAT(Trained(network.layers[1]),
              ElementsAre("model/0001/attention.qkv.lora_a.weight [2, 8]",
                          "model/0001/attention.qkv.lora_b.weight [16, 2]"));
  EXPECT_THAT(Forward(network.layers[1]), ElementsAre("rms_norm", "linear", "linear", "linear",
                                                      "rotary", "attention", "linear"));
}

TEST(Lora, EveryLinearLayerButTheHeadCanHaveOne) {
  const Network network = With({.rank = 1, .targets = {"*"}}, Gpt());
  EXPECT_THAT(Trained(network.layers[1]),
              ElementsAre("model/0001/attention.qkv.lora_a.weight [1, 8]",
                          "model/0001/attention.qkv.lora_b.weight [24, 1]",
                          "model/0001/attention.proj.lora_a.weight [1, 8]",
                          "model/0001/attention.proj.lora_b.weight [8, 1]"));
  EXPECT_THAT(Trained(network.layers[2]), ElementsAre("model/0002/mlp.up.lora_a.weight [1, 8]",
                                                      "model/0002/mlp.up.lora_b.weight [32, 1]",
                                                      "model/0002/mlp.down.lora_a.weight [1, 32]",
                                                      "model/0002/mlp.down.lora_b.weight [8, 1]"));
  EXPECT_THAT(Trained(network.layers.back()), IsEmpty());
  EXPECT_THAT(Forward(network.layers[2]), testing::Contains("gelu"));
}

TEST(Lora, ProjectionsMayHaveGapsBetweenThem) {
  for (const std::vector<std::string>& targets :
       std::vector<std::vector<std::string>>{{"query"},
                                             {"key"},
                                             {"value"},
                                             {"query", "key"},
                                             {"key", "value"},
                                             {"query", "value"},
                                             {"query", "key", "value"}}) {
    const Network network = With({.rank = 2, .targets = targets}, Llama());
    const std::vector<Adapter> adapters = AdaptersOf(network);
    ASSERT_EQ(adapters.size(), 2 * targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      const Adapter& adapter = adapters[i];
      EXPECT_EQ(adapter.layer, 1);
      EXPECT_EQ(adapter.module, "model/0001/attention." + targets[i]);
      EXPECT_EQ(adapter.weight, "model/0001/attention.qkv.weight");
      EXPECT_EQ(adapter.first_row, targets[i] == "query" ? 0 : targets[i] == "key" ? 8 : 12);
      EXPECT_EQ(adapter.rows, targets[i] == "query" ? 8 : 4);
    }
  }
}

TEST(Lora, AdaptersKnowTheirScale) {
  for (const double alpha : {0.0, 2.0, 3.0, 16.0}) {
    const Network network =
        With({.rank = 2, .alpha = alpha, .targets = {"qkv", "proj", "up"}}, Gpt());
    const std::vector<Adapter> adapters = AdaptersOf(network);
    ASSERT_EQ(adapters.size(), 3u);
    for (const Adapter& adapter : adapters) EXPECT_EQ(adapter.scale, alpha == 0 ? 1 : alpha / 2);
    EXPECT_EQ(adapters[2].weight, "model/0002/mlp.up.weight");
    EXPECT_EQ(adapters[2].rows, 32);
  }
  EXPECT_THAT(AdaptersOf(Gpt()), IsEmpty());
}

TEST(Lora, InputsAreDroppedOnceForAllAdaptersThatReadThem) {
  const Network network = With({.rank = 2, .dropout = 0.5}, Llama());
  EXPECT_THAT(Forward(network.layers[1]),
              ElementsAre("rms_norm", "linear", "dropout", "linear", "linear", "linear", "linear",
                          "slice_gradient", "concatenate", "add", "rotary", "attention", "linear"));
  EXPECT_THAT(OperationsOf(network.layers[1].lists->evaluation),
              testing::Not(testing::Contains("dropout")));
}

TEST(Lora, TheRestOfANetworkStaysAsItIs) {
  const Network before = Llama(/*tied=*/true), network = With({.rank = 2}, before);
  EXPECT_TRUE(HasBase(network));
  EXPECT_FALSE(HasBase(before));
  EXPECT_EQ(network.layers.back().parameters[0].tied_to, "model/0000/token.weight");
  for (size_t i = 0; i < before.layers.size(); ++i) {
    EXPECT_EQ(network.layers[i].function, before.layers[i].function);
    EXPECT_EQ(network.layers[i].inputs, before.layers[i].inputs);
    EXPECT_EQ(network.layers[i].outputs, before.layers[i].outputs);
  }
  const auto same = AddAdapters(before, {}, "training.lora");
  EXPECT_EQ(same->layers[1].lists, before.layers[1].lists);
}

// Checkpoints of other scales are of another function.
TEST(Lora, TheScaleIsAPartOfTheFunction) {
  const auto text = [](double alpha) {
    return CanonicalNetworkText(With({.rank = 2, .alpha = alpha}, Llama()));
  };
  EXPECT_EQ(text(0), text(2));
  EXPECT_NE(text(2), text(3));
}

TEST(Lora, ErrorsNameTheFieldTheValueAndTheRemedy) {
  EXPECT_EQ(Refusal({.rank = 5}, Llama()),
            "training.lora.rank: 5; must be <= 4: model/0001/attention.value has 8 inputs and 4 "
            "outputs");
  EXPECT_EQ(Refusal({.rank = 2, .targets = {"query", "q_proj"}}, Llama()),
            "training.lora.targets[1]: \"q_proj\"; must match a linear layer's name or its end: "
            "there are down, gate, key, proj, qkv, query, up, value");
  EXPECT_EQ(Refusal({.rank = 2, .alpha = -1}, Llama()),
            "training.lora.alpha: -1; divided by the rank 2 it must be in [1e-06, 1e+06]");
  EXPECT_THAT(Refusal({.rank = 2, .dropout = 1}, Llama()), HasSubstr("training.lora"));
  EXPECT_THAT(Refusal({.rank = 2}, ExpandedOf(ResnetSpec{.image = {8, 8, 3}, .classes = 3})),
              HasSubstr("statistics of batch norms"));
}

}  // namespace
}  // namespace stagecoach
