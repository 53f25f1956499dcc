// Types of what image networks are made of, with PyTorch's extents, and the words of what is
// refused.
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/catalogue.h"
#include "operations/concatenate.h"
#include "operations/images/convolution.h"
#include "operations/images/pool.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string WhyNotImage(const std::string& operation, const Attributes& attributes,
                        const std::vector<ValueType>& inputs,
                        const std::vector<ValueType>& adds = {}) {
  const auto types = OperationNamed(operation).Types(attributes, inputs, adds);
  EXPECT_EQ(types.status().code(), absl::StatusCode::kInvalidArgument) << operation;
  return std::string(types.status().message());
}

ValueType FirstType(const std::string& operation, const Attributes& attributes,
                    const std::vector<ValueType>& inputs) {
  const auto types = OperationNamed(operation).Types(attributes, inputs, {});
  CHECK_OK(types.status());
  return types->front();
}

ValueType Kernel(Shape shape) { return WeightType(Element::kActivation, std::move(shape)); }

const ValueType kPhoto = ActivationType({224, 224, 3});

TEST(ConvolutionTypes, OfAResNetsStem) {
  const ConvolutionAttributes stem{.steps = {.stride = {2, 2}, .padding = {3, 3}}};
  const ValueType y = FirstType("convolution", ToAttributes(stem), {kPhoto, Kernel({64, 7, 7, 3})});
  EXPECT_EQ(y, ActivationType({112, 112, 64}));
  const PoolSteps pool{.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  EXPECT_EQ(FirstType("max_pool", ToAttributes(MaxPoolAttributes{pool}), {y}),
            ActivationType({56, 56, 64}));
  EXPECT_EQ(FirstType("global_average_pool", {}, {y}), ActivationType({64}));
  EXPECT_EQ(FirstType("linear", {}, {ActivationType({64}), Kernel({10, 64})}),
            ActivationType({10}));
}

TEST(ConvolutionTypes, KnowDilationGroupsAndUnequalSides) {
  const ConvolutionAttributes wide{.steps = {.padding = {0, 3}}};
  EXPECT_EQ(FirstType("convolution", ToAttributes(wide),
                      {ActivationType({17, 17, 8}), Kernel({8, 1, 7, 8})}),
            ActivationType({17, 17, 8}));
  const ConvolutionAttributes apart{
      .steps = {.stride = {2, 1}, .padding = {2, 2}, .dilation = {2, 2}, .groups = 8}};
  EXPECT_EQ(FirstType("convolution", ToAttributes(apart),
                      {ActivationType({17, 17, 8}), Kernel({16, 3, 3, 1})}),
            ActivationType({9, 17, 16}));
}

TEST(ConvolutionTypes, SayWhatWouldFit) {
  EXPECT_EQ(WhyNotImage("convolution", {}, {kPhoto, Kernel({64, 3, 3, 4})}),
            "x is activation[n, 224, 224, 3]; must be activation[n, 224, 224, 4]");
  EXPECT_EQ(WhyNotImage("convolution", {}, {ActivationType({2, 9, 3}), Kernel({4, 3, 3, 3})}),
            "the image's height is 2 and 2 with its padding; must be at least 3, what the window "
            "reaches over");
  const ConvolutionAttributes groups{.steps = {.groups = 3}};
  EXPECT_EQ(WhyNotImage("convolution", ToAttributes(groups), {kPhoto, Kernel({4, 1, 1, 1})}),
            "weight is activation[4, 1, 1, 1]; must be [out, kernel height, kernel width, in / "
            "groups] with an out that 3 groups divide");
  EXPECT_EQ(WhyNotImage("convolution", {}, {ActivationType({8, 16}), Kernel({4, 1, 1, 16})}),
            "x is activation[n, 8, 16]; must be an activation of samples, [height, width, "
            "channels]");
}

TEST(ConvolutionGradientTypes, FollowTheImageAndNotTheStride) {
  const ConvolutionSteps strided{.stride = {2, 2}};
  const ValueType weight = Kernel({4, 3, 3, 3}), dy = ActivationType({3, 3, 4});
  for (const int64_t extent : {7, 8}) {  // both give 3 places
    const ConvolutionInputGradientAttributes input{strided, {extent, extent}};
    EXPECT_EQ(FirstType("convolution_input_gradient", ToAttributes(input), {dy, weight}),
              ActivationType({extent, extent, 3}));
  }
  const ConvolutionInputGradientAttributes wrong{strided, {9, 9}};
  EXPECT_EQ(WhyNotImage("convolution_input_gradient", ToAttributes(wrong), {dy, weight}),
            "dy is activation[n, 3, 3, 4]; must be activation[n, 4, 4, 4]");
}

TEST(ConvolutionCost, IsTwoFlopsAMultiplyAdd) {
  const ValueType weight = Kernel({16, 3, 3, 4}), y = ActivationType({5, 6, 16});
  const ConvolutionAttributes groups{.steps = {.padding = {1, 1}, .groups = 2}};
  const CallTypes types{{ActivationType({5, 6, 8}), weight}, {y}, {}};
  const Cost cost = OperationNamed("convolution").CostOf(ToAttributes(groups), types, 3);
  EXPECT_EQ(cost.products, 2 * 3 * 5 * 6 * 16 * 3 * 3 * 4);
}

TEST(PoolTypes, RefuseMorePaddingThanHalfOfTheWindow) {
  const MaxPoolAttributes padded{{.window = {3, 3}, .padding = {1, 2}}};
  EXPECT_EQ(WhyNotImage("max_pool", ToAttributes(padded), {kPhoto}),
            "attribute padding_width: 2; must be <= 1");
}

TEST(ConcatenateTypes, AddUpTheLastExtent) {
  const ValueType a = ActivationType({4, 4, 3}), b = ActivationType({4, 4, 5});
  EXPECT_EQ(FirstType("concatenate", {}, {a, b, a}), ActivationType({4, 4, 11}));
  EXPECT_EQ(WhyNotImage("concatenate", {}, {a, ActivationType({4, 5, 3})}),
            "operand 1 is activation[n, 4, 5, 3]; must be activation[n, 4, 4, 3]");
  EXPECT_EQ(FirstType("slice", ToAttributes(SliceAttributes{2, 3}), {b}), a);
  EXPECT_EQ(WhyNotImage("slice", ToAttributes(SliceAttributes{3, 3}), {b}),
            "x is activation[n, 4, 4, 5]; its last extent must be at least 6, the slice's end");
}

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// begin + extent was a negative number: the slice was allowed, and read far outside of its input.
TEST(SliceTypes, RefuseABeginWhoseEndCannotBeCounted) {
  const ValueType x = ActivationType({4, 4, 5});
  const std::string allowed = "9223372036854775807; must be <= 1048576";
  EXPECT_EQ(WhyNotImage("slice", ToAttributes(SliceAttributes{kHuge, 1}), {x}),
            "attribute begin: " + allowed);
  EXPECT_EQ(WhyNotImage("slice", ToAttributes(SliceAttributes{1, kHuge}), {x}),
            "attribute extent: " + allowed);
  EXPECT_EQ(WhyNotImage("slice_gradient", ToAttributes(SliceGradientAttributes{kHuge, 8}), {x}),
            "attribute begin: " + allowed);
}

TEST(SliceTypes, RefuseAnEndBehindTheInputs) {
  const ValueType x = ActivationType({4, 4, 5});
  EXPECT_EQ(WhyNotImage("slice", ToAttributes(SliceAttributes{1 << 20, 1}), {x}),
            "x is activation[n, 4, 4, 5]; its last extent must be at least 1048577, the slice's "
            "end");
  EXPECT_EQ(WhyNotImage("slice_gradient", ToAttributes(SliceGradientAttributes{4, 8}), {x}),
            "attribute whole: 8; must be at least 9, the slice's end");
}

TEST(ConcatenateTypes, RefuseASumThatCannotBeSliced) {
  const ValueType half = ActivationType({1 << 19}), one = ActivationType({1});
  EXPECT_EQ(FirstType("concatenate", {}, {half, half}), ActivationType({1 << 20}));
  EXPECT_EQ(WhyNotImage("concatenate", {}, {half, half, one}),
            "operand 2 is activation[n, 1]; with it the last extent is over 1048576, the most that "
            "one may be");
  EXPECT_EQ(WhyNotImage("concatenate", {}, {one, ActivationType({kHuge})}),
            "operand 1 is activation[n, 9223372036854775807]; with it the last extent is over "
            "1048576, the most that one may be");
}

// Each of them once wrapped around in a product and let the window fit.
TEST(WindowTypes, RefuseStepsWhoseProductsCannotBeCounted) {
  const auto refused = [](const ConvolutionSteps& steps) {
    return WhyNotImage("convolution", ToAttributes(ConvolutionAttributes{steps}),
                       {kPhoto, Kernel({64, 3, 3, 3})});
  };
  const std::string allowed = ": 9223372036854775807; must be <= 1048576";
  EXPECT_EQ(refused({.stride = {kHuge, 1}}), "attribute stride_height" + allowed);
  EXPECT_EQ(refused({.padding = {1, kHuge}}), "attribute padding_width" + allowed);
  EXPECT_EQ(refused({.dilation = {kHuge, 1}}), "attribute dilation_height" + allowed);
  EXPECT_EQ(refused({.groups = kHuge}), "attribute groups" + allowed);
  EXPECT_EQ(WhyNotImage(
                "max_pool",
                ToAttributes(MaxPoolAttributes{{.window = {kHuge, 2}, .padding = {kHuge / 2, 0}}}),
                {kPhoto}),
            "attribute window_height: 9223372036854775807; must be <= 4096");
}

TEST(WindowTypes, RefuseImagesAndKernelsThatAreTooLarge) {
  EXPECT_EQ(WhyNotImage("max_pool", {}, {ActivationType({kHuge, 2, 3})}),
            "x is activation[n, 9223372036854775807, 2, 3]; its extents must be <= 1048576");
  EXPECT_EQ(WhyNotImage("convolution", ToAttributes(ConvolutionAttributes{.steps = {.groups = 4}}),
                        {kPhoto, Kernel({4, 1, 1, int64_t{1} << 62})}),
            "weight is activation[4, 1, 1, 4611686018427387904]; its extents must be <= 1048576");
}

}  // namespace
}  // namespace stagecoach
