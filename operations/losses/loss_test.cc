// Types of losses: the gradient of the first input where it is asked for, then the sums.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/catalogue.h"
#include "operations/losses/cross_entropy.h"
#include "operations/losses/loss_types.h"
#include "operations/losses/mean_squared_error.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

std::vector<ValueType> LossTypes(const std::string& operation, const Attributes& attributes,
                                 const std::vector<ValueType>& inputs) {
  const auto types = OperationNamed(operation).Types(attributes, inputs, {});
  CHECK_OK(types.status());
  return *types;
}

ValueType Sums(int64_t count) { return WeightType(Element::kFloat64, {count}); }
const ValueType kLogits = ActivationType({10});
const ValueType kLabel{Element::kIds, Leading::kSamples, {}};

TEST(CrossEntropyTypes, OfOneLabelASample) {
  CrossEntropyAttributes attributes;
  EXPECT_THAT(LossTypes("cross_entropy", ToAttributes(attributes), {kLogits, kLabel}),
              ElementsAre(Sums(2)));
  attributes = {.accuracy = true, .top = 5, .gradient = true};
  EXPECT_THAT(LossTypes("cross_entropy", ToAttributes(attributes), {kLogits, kLabel, ScaleType()}),
              ElementsAre(kLogits, Sums(4)));
  EXPECT_EQ(OperationNamed("cross_entropy").MayOverwrite(ToAttributes(attributes)),
            std::vector<int>{0});
}

TEST(CrossEntropyTypes, RefuseTargetsOfAnotherShape) {
  const ValueType targets{Element::kIds, Leading::kSamples, {10}};
  EXPECT_EQ(OperationNamed("cross_entropy")
                .Types({}, std::vector<ValueType>{kLogits, targets}, {})
                .status()
                .message(),
            "targets is ids[n, 10]; must be ids[n]");
}

TEST(CrossEntropyTypes, RefuseATopOfMoreThanThereAre) {
  const auto why_not = [](int64_t top) {
    return OperationNamed("cross_entropy")
        .Types(ToAttributes(CrossEntropyAttributes{.top = top}),
               std::vector<ValueType>{kLogits, kLabel}, {})
        .status();
  };
  EXPECT_TRUE(why_not(10).ok());
  EXPECT_EQ(why_not(11).message(), "attribute top: 11; must be <= 10, the classes");
}

TEST(CrossEntropyTypes, HaveThreeNumbersOfEachClassBehindTheSums) {
  CrossEntropyAttributes attributes{.accuracy = true, .mean_iou = true};
  EXPECT_THAT(LossTypes("cross_entropy", ToAttributes(attributes), {kLogits, kLabel}),
              ElementsAre(Sums(3 + 30)));
  attributes.gradient = true;
  EXPECT_THAT(LossTypes("cross_entropy", ToAttributes(attributes), {kLogits, kLabel, ScaleType()}),
              ElementsAre(kLogits, Sums(3 + 30)));
  EXPECT_THAT(OperationNamed("cross_entropy").Sums(ToAttributes(attributes)),
              ElementsAre("loss", "terms", "accuracy"));
  attributes = {.per_class = true};
  EXPECT_THAT(LossTypes("cross_entropy", ToAttributes(attributes), {kLogits, kLabel}),
              ElementsAre(Sums(2 + 30)));
  attributes.gradient = true;
  EXPECT_THAT(LossTypes("cross_entropy", ToAttributes(attributes), {kLogits, kLabel, ScaleType()}),
              ElementsAre(kLogits, Sums(2)))
      << "training counts no class for that";
}

TEST(CrossEntropyTypes, RefuseToCountMoreClassesThanAReportIsToHold) {
  const auto why_not = [](const CrossEntropyAttributes& attributes, int64_t classes) {
    return OperationNamed("cross_entropy")
        .Types(ToAttributes(attributes), std::vector<ValueType>{ActivationType({classes}), kLabel},
               {})
        .status();
  };
  EXPECT_TRUE(why_not({.mean_iou = true, .per_class = true}, 1024).ok());
  EXPECT_EQ(why_not({.mean_iou = true}, 1025).message(),
            "attribute mean_iou: true; must be false with 1025 classes: of more than 1024 none is "
            "counted on its own");
  EXPECT_EQ(why_not({.gradient = false, .per_class = true}, 1025).message(),
            "attribute per_class: true; must be false with 1025 classes: of more than 1024 none is "
            "counted on its own");
  EXPECT_TRUE(why_not({}, 1025).ok());
}

TEST(CrossEntropyTypes, TakeAWeightForEachTarget) {
  const ValueType logits = ActivationType({4, 10});
  const ValueType targets{Element::kIds, Leading::kSamples, {4}};
  const ValueType weights{Element::kFloat32, Leading::kSamples, {4}};
  CrossEntropyAttributes attributes{.accuracy = true, .weighted = true};
  EXPECT_THAT(LossTypes("cross_entropy", ToAttributes(attributes), {logits, targets, weights}),
              ElementsAre(Sums(3)));
  attributes.gradient = true;
  EXPECT_THAT(
      LossTypes("cross_entropy", ToAttributes(attributes), {logits, targets, weights, ScaleType()}),
      ElementsAre(logits, Sums(3)));
  const auto refusal = [&](const std::vector<ValueType>& inputs) {
    return std::string(OperationNamed("cross_entropy")
                           .Types(ToAttributes(attributes), inputs, {})
                           .status()
                           .message());
  };
  EXPECT_EQ(refusal({logits, targets, ScaleType()}),
            "cross_entropy has 3 operands; it takes 4: logits, targets, weights, scale");
  EXPECT_EQ(refusal({logits, targets, SampleWeightType(), ScaleType()}),
            "weights is float32[n]; must be float32[n, 4]");
}

TEST(MeanSquaredErrorTypes, TakeAWeightForEachSample) {
  const ValueType image = ActivationType({4, 4, 3});
  const ValueType target{Element::kFloat32, Leading::kSamples, {4, 4, 3}};
  const Attributes attributes = ToAttributes(MeanSquaredErrorAttributes{.weighted = true});
  EXPECT_THAT(LossTypes("mean_squared_error", attributes, {image, target, SampleWeightType()}),
              ElementsAre(Sums(2)));
  EXPECT_EQ(OperationNamed("mean_squared_error")
                .Types(attributes, std::vector<ValueType>{image, target, target}, {})
                .status()
                .message(),
            "weights is float32[n, 4, 4, 3]; must be float32[n]");
}

// A weight that a job may give is one that a loss takes, though it is float32 there.
TEST(LossWeight, IsBoundedInEitherType) {
  for (const double weight : {0.0, kLeastWeight, 1.0, kMostWeight}) {
    EXPECT_TRUE(IsLossWeight(static_cast<float>(weight))) << weight;
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float weight : {-1.0f, 9e-10f, 1.1e9f, infinity, std::nanf("")}) {
    EXPECT_FALSE(IsLossWeight(weight)) << weight;
  }
}

TEST(MeanSquaredErrorTypes, OfAnImageAndItsTarget) {
  const ValueType image = ActivationType({4, 4, 3});
  const ValueType target{Element::kFloat32, Leading::kSamples, {4, 4, 3}};
  EXPECT_THAT(LossTypes("mean_squared_error", {}, {image, target}), ElementsAre(Sums(2)));
  EXPECT_THAT(
      LossTypes("mean_squared_error", ToAttributes(MeanSquaredErrorAttributes{.gradient = true}),
                {image, target, ScaleType()}),
      ElementsAre(image, Sums(2)));
}

}  // namespace
}  // namespace stagecoach
