// Targets with weights: the same bits in every pipeline, and the same losses on each device, also
// where a whole micro-batch weighs nothing.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "network/objectives/cross_entropy.h"
#include "network/objectives/mean_squared_error.h"
#include "stage/testing/skip_network.h"
#include "stage/testing/weighted_images.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

struct Weighted {
  std::string name;
  Network network;
  std::shared_ptr<const BatchSource> source;
};

// Micro-batches of 2, 2 and 1 samples, as every pipeline has them.
std::shared_ptr<const BatchSource> ImagesOfWeight(std::vector<float> weights) {
  return std::make_shared<WeightedImages>(
      WeightedImages::Sizes{3, kWeightedNumbers, kWeightedClasses}, std::move(weights));
}

std::vector<Weighted> EveryWeight() {
  const CrossEntropySpec classes{.ignore_index = 3, .top = 2, .class_weights = {0.25, 3, 0, 1}};
  const MeanSquaredErrorSpec numbers;
  const auto bf16 = Precision::kBfloat16;
  const std::vector<float> last = {0.5, 2, 1, 3.25, 0}, first = {0, 0, 1, 3.25, 0.7f};
  return {{"classes", WeightedNetwork(classes, false), nullptr},
          {"both", WeightedNetwork(classes, true), ImagesOfWeight(first)},
          {"samples", WeightedNetwork(CrossEntropySpec{.label_smoothing = 0.1}, true),
           ImagesOfWeight(last)},
          {"samples in bfloat16", WeightedNetwork(CrossEntropySpec{}, true, bf16),
           ImagesOfWeight(last)},
          {"numbers", WeightedNetwork(numbers, true), ImagesOfWeight(first)},
          {"numbers in bfloat16", WeightedNetwork(numbers, true, bf16), ImagesOfWeight(last)},
          {"text",
           MakeSkipNetwork(false, Precision::kFloat32,
                           CrossEntropySpec{.class_weights = {1, 0, 0.5, 4, 1, 2, 0.125, 1}}),
           nullptr}};
}

TEST(WeightsInEveryPipeline, HaveTheSameBits) {
  for (const Weighted& weighted : EveryWeight()) {
    SCOPED_TRACE(weighted.name);
    ASSERT_TRUE(weighted.network.objective.weighted());
    ExpectTheSameBitsInEveryPipeline(weighted.network, weighted.source);
  }
}

TEST(WeightsInEveryPipeline, HaveTheReferencesLossesOnEachDevice) {
  for (const Weighted& weighted : EveryWeight()) {
    SCOPED_TRACE(weighted.name);
    ExpectTheReferencesLosses(weighted.network, weighted.source);
  }
}

}  // namespace
}  // namespace stagecoach
