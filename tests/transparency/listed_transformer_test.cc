// A list of layers that spells a transformer out trains with its bits, if it begins with its values.
#include <memory>

#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/listed_transformer_testing.h"
#include "stage/testing/made_up_pairs.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

Network ExpandedPairs(NetworkSpec spec) {
  spec.objective = CrossEntropySpec{.label_smoothing = 0.1, .ignore_index = 0};
  auto network = ExpandNetwork(spec, Precision::kFloat32);
  CHECK_OK(network.status());
  return *std::move(network);
}

TransformerSpec TwoAndTwo() {
  return {.vocabulary = 29,
          .source_context = 17,
          .target_context = 10,
          .width = 20,
          .hidden = 33,
          .heads = 2,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .dropout = 0.1};
}

Network ListedPairs() { return ExpandedPairs(ListedTransformer(TwoAndTwo())); }

std::shared_ptr<const BatchSource> PairsWith(int32_t padding, const Network& network) {
  return std::make_shared<MadeUpPairs>(
      network, MadeUpPairs::Sizes{.batch_size = 5, .micro_batches = 3, .lengths_vary = true},
      padding);
}

TEST(ListedTransformer, HasTheBitsOfTheTransformer) {
  const Network zoo = ExpandedPairs(TwoAndTwo());
  Network list = ListedPairs();
  for (const PipelineDevice& device : PipelineDevices()) {
    HarnessOptions options{.stages = 3, .source = PairsWith(7, zoo)};
    options.make_backend = device.variants.front();
    const HarnessResult truth = TrainThreeSteps(options, zoo);
    EXPECT_FALSE(TrainThreeSteps(options, ListedPairs()) == truth)
        << device.name << ": a list begins with other values";
    for (size_t i = 0; i < zoo.layers.size(); ++i)
      list.layers[i].parameters = zoo.layers[i].parameters;
    EXPECT_TRUE(TrainThreeSteps(options, list) == truth) << device.name;
  }
}

TEST(ListedTransformer, PaddingOfTheSourceChangesNoBit) {
  const Network list = ListedPairs();
  for (const PipelineDevice& device : PipelineDevices()) {
    HarnessOptions options{.stages = 3};
    options.make_backend = device.variants.front();
    const auto trained = [&](int32_t padding) {
      options.source = PairsWith(padding, list);
      return TrainThreeSteps(options, list);
    };
    EXPECT_TRUE(trained(0) == trained(28)) << device.name;
  }
}

}  // namespace
}  // namespace stagecoach
