// The bits of a training do not depend on the padding of pairs of sequences, and are the same in
// every pipeline.
#include <memory>

#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/transformer.h"
#include "stage/testing/made_up_pairs.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

// Targets of class 0 are padding.
Network Translator(TransformerNorm norm) {
  NetworkSpec spec = TransformerSpec{.vocabulary = 29,
                                     .source_context = 17,
                                     .target_context = 10,
                                     .width = 20,
                                     .hidden = 33,
                                     .heads = 2,
                                     .encoder_layers = 2,
                                     .decoder_layers = 2,
                                     .norm = norm,
                                     .dropout = 0.1};
  spec.objective = CrossEntropySpec{.label_smoothing = 0.1, .ignore_index = 0};
  auto network = ExpandNetwork(spec, Precision::kFloat32);
  CHECK_OK(network.status());
  return *std::move(network);
}

// Micro-batches of 2, 2 and 1 samples, as every pipeline has them.
std::shared_ptr<const BatchSource> PaddedWith(int32_t padding, const Network& network) {
  return std::make_shared<MadeUpPairs>(
      network, MadeUpPairs::Sizes{.batch_size = 5, .micro_batches = 3, .lengths_vary = true},
      padding);
}

TEST(Padding, OfTheSourceChangesNoBit) {
  for (const TransformerNorm norm : {TransformerNorm::kPre, TransformerNorm::kPost}) {
    const Network network = Translator(norm);
    for (const PipelineDevice& device : PipelineDevices()) {
      HarnessOptions options{.stages = 3};
      options.make_backend = device.variants.front();
      const auto trained = [&](std::shared_ptr<const BatchSource> source) {
        options.source = std::move(source);
        return TrainThreeSteps(options, network);
      };
      const HarnessResult zeros = trained(PaddedWith(0, network));
      EXPECT_TRUE(trained(PaddedWith(28, network)) == zeros) << device.name;
      const auto without = std::make_shared<MadeUpPairs>(
          network, MadeUpPairs::Sizes{.batch_size = 5, .micro_batches = 3, .lengths_vary = true});
      EXPECT_FALSE(trained(without) == zeros) << device.name << ": the targets are others";
    }
  }
}

// Of mini-batches that are shorter than the network allows. Without an ignored class the scale of
// the loss follows from the lengths alone.
TEST(Lengths, OfAMiniBatchAreASmallerNetwork) {
  TransformerSpec spec{.vocabulary = 29,
                       .source_context = 17,
                       .target_context = 10,
                       .width = 20,
                       .hidden = 33,
                       .heads = 2,
                       .encoder_layers = 1,
                       .decoder_layers = 1};
  Lengths lengths;
  lengths.Set(Length::kSource, 9);
  lengths.Set(Length::kTarget, 6);
  for (const PipelineDevice& device : PipelineDevices()) {
    HarnessOptions options{.stages = 2};
    options.make_backend = device.variants.front();
    const auto trained = [&](const TransformerSpec& of) {
      const auto network = ExpandNetwork(of, Precision::kFloat32);
      CHECK_OK(network.status());
      options.source = std::make_shared<MadeUpPairs>(
          *network, MadeUpPairs::Sizes{.batch_size = 5, .micro_batches = 3, .lengths = lengths});
      return TrainThreeSteps(options, *network);
    };
    TransformerSpec small = spec;
    small.source_context = 9;
    small.target_context = 6;
    const HarnessResult shorter = trained(spec), whole = trained(small);
    EXPECT_EQ(shorter.losses, whole.losses) << device.name;
    EXPECT_EQ(shorter.squared_norms, whole.squared_norms) << device.name;
  }
}

TEST(Padding, HasTheSameBitsInEveryPipeline) {
  const Network network = Translator(TransformerNorm::kPre);
  ExpectTheSameBitsInEveryPipeline(network, PaddedWith(7, network));
}

TEST(Padding, HasTheReferencesLossesOnEachDevice) {
  const Network network = Translator(TransformerNorm::kPre);
  ExpectTheReferencesLosses(network, PaddedWith(7, network));
}

}  // namespace
}  // namespace stagecoach
