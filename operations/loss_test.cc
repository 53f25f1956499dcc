// Types of losses: the gradient of the first input where it is asked for, then the sums.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/catalogue.h"
#include "operations/cross_entropy.h"
#include "operations/loss_types.h"
#include "operations/mean_squared_error.h"

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
