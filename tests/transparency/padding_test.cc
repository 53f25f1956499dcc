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
Network Translator(TransformerNorm norm, double dropout = 0.1) {
  NetworkSpec spec = TransformerSpec{.vocabulary = 29,
                                     .source_context = 17,
                                     .target_context = 10,
                                     .width = 20,
                                     .hidden = 33,
                                     .heads = 2,
                                     .encoder_layers = 2,
                                     .decoder_layers = 2,
                                     .norm = norm,
                                     .dropout = dropout};
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

// Another source's mini-batches with more padding behind its samples.
class WithMorePadding final : public BatchSource {
 public:
  WithMorePadding(std::shared_ptr<const BatchSource> shorter, const Lengths& lengths)
      : shorter_(std::move(shorter)), lengths_(lengths) {}
  const DatasetManifest& manifest() const override { return shorter_->manifest(); }
  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    ASSIGN_OR_RETURN(HostBatch batch, shorter_->Train(step, micro_batch, names));
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "source_length") continue;
      const Length length = names[i] == "source" ? Length::kSource : Length::kTarget;
      const auto bytes = [&](const Lengths& of) {
        return static_cast<size_t>(of.of(length)) * sizeof(int32_t);
      };
      std::vector<std::byte> padded(static_cast<size_t>(batch.samples) * bytes(lengths_));
      for (size_t sample = 0; sample < static_cast<size_t>(batch.samples); ++sample) {
        std::copy_n(batch.arrays[i].begin() + static_cast<ptrdiff_t>(sample * bytes(batch.lengths)),
                    bytes(batch.lengths),
                    padded.begin() + static_cast<ptrdiff_t>(sample * bytes(lengths_)));
      }
      batch.arrays[i] = std::move(padded);
    }
    batch.lengths = lengths_;
    return batch;
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t, MicroBatchId,
                                       std::span<const std::string>) const override {
    return HostBatch();
  }
  int64_t evaluation_batches() const override { return 0; }

 private:
  const std::shared_ptr<const BatchSource> shorter_;
  const Lengths lengths_;
};

Lengths LengthsOf(int64_t source, int64_t target) {
  Lengths lengths;
  lengths.Set(Length::kSource, source);
  lengths.Set(Length::kTarget, target);
  return lengths;
}

// Targets of class 0, which padding is, have no gradient.
TEST(Padding, OfAnyAmountChangesNoBitOfASmallNetwork) {
  const Network network = Translator(TransformerNorm::kPre, /*dropout=*/0);
  const auto pairs = std::make_shared<MadeUpPairs>(
      network, MadeUpPairs::Sizes{.batch_size = 5, .micro_batches = 3, .lengths = LengthsOf(9, 6)});
  for (const PipelineDevice& device : PipelineDevices()) {
    HarnessOptions options{.stages = 3};
    options.make_backend = device.variants.front();
    options.source = pairs;
    const HarnessResult shortest = TrainThreeSteps(options, network);
    for (const auto& [source, target] : {std::pair(9, 10), std::pair(13, 6), std::pair(17, 10)}) {
      options.source = std::make_shared<WithMorePadding>(pairs, LengthsOf(source, target));
      const HarnessResult longer = TrainThreeSteps(options, network);
      EXPECT_EQ(longer.losses, shortest.losses) << device.name << " " << source << " " << target;
      EXPECT_TRUE(longer == shortest) << device.name << " " << source << " " << target;
    }
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
