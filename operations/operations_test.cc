// What every operation promises, and the words of what is refused.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/attention/attention.h"
#include "operations/catalogue.h"
#include "operations/linear.h"
#include "operations/norms/layer_norm.h"
#include "operations/pointwise/dropout.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ValueType kRows = ActivationType({8, 16});
const ValueType kWide = ActivationType({8, 48});

std::string RefusalOf(const std::string& operation, const Attributes& attributes,
                      const std::vector<ValueType>& inputs,
                      const std::vector<ValueType>& adds = {}) {
  const auto types = OperationNamed(operation).Types(attributes, inputs, adds);
  EXPECT_EQ(types.status().code(), absl::StatusCode::kInvalidArgument) << operation;
  return std::string(types.status().message());
}

TEST(Catalogue, KnowsEveryOperationByItsName) {
  for (const Operation* operation : AllOperations()) {
    EXPECT_EQ(&OperationNamed(operation->name()), operation);
    EXPECT_TRUE(operation->CheckAttributes({}).ok()) << operation->name();
  }
}

TEST(Catalogue, AnUnknownNameIsAnsweredWithTheNearest) {
  const auto found = FindOperation("atention");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("there is no operation \"atention\"; did you mean \"attention\"?"));
}

TEST(Types, OfALinearFollowItsWeight) {
  const ValueType weight = WeightType(Element::kActivation, {48, 16});
  const ValueType bias = WeightType(Element::kActivation, {48});
  const auto types =
      OperationNamed("linear").Types(ToAttributes(LinearAttributes{.bias = true, .gelu = true}),
                                     std::vector<ValueType>{kRows, weight, bias}, {});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_THAT(*types, ElementsAre(kWide, kWide));
  EXPECT_EQ(RefusalOf("linear", {}, {kWide, weight}),
            "x is activation[n, 8, 48]; must be activation[n, 8, 16]");
  EXPECT_THAT(RefusalOf("linear", ToAttributes(LinearAttributes{.bias = true}), {kRows, weight}),
              HasSubstr("has 2 operands; with these attributes it takes 3"));
  EXPECT_THAT(RefusalOf("linear", ToAttributes(LinearAttributes{.residual = true, .gelu = true}),
                        {kRows, weight, kWide}),
              HasSubstr("one of them at most"));
}

TEST(Types, OfAttentionNeedHeadsThatDivideTheWidth) {
  const Attributes five = ToAttributes(AttentionAttributes{.heads = 5});
  EXPECT_EQ(RefusalOf("attention", five, {kWide}),
            "qkv is activation[n, 8, 48]; must be [context, (5 + 2 * 5) * head_width]");
}

TEST(Types, OfTheOthersNameTheOperandThatDoesNotFit) {
  const ValueType narrow = WeightType(Element::kFloat32, {8});
  EXPECT_EQ(RefusalOf("layer_norm", ToAttributes(LayerNormAttributes{}), {kRows, narrow, narrow}),
            "weight is float32[8]; must be float32[16]");
  EXPECT_EQ(RefusalOf("add", {}, {kRows, kWide}),
            "b is activation[n, 8, 48]; must be activation[n, 8, 16]");
  EXPECT_EQ(RefusalOf("embedding", {}, {kRows, narrow, narrow}),
            "ids are activation[n, 8, 16]; must be ids of one extent, the context");
  EXPECT_EQ(RefusalOf("gelu", {}, {kRows, kRows}), "gelu has 2 operands; it takes 1: x");
}

TEST(Cost, OfAProductIsTwoFlopsAMultiplyAdd) {
  const CallTypes types = {{kRows, WeightType(Element::kActivation, {48, 16})}, {kWide}, {}};
  const Cost cost = OperationNamed("linear").CostOf({}, types, 3);
  EXPECT_EQ(cost.products, 2 * 3 * 8 * 16 * 48);
  EXPECT_EQ(cost.flops, cost.products);
}

TEST(ValueTypes, AreRowsOfTheLastExtentInMemory) {
  const auto runtime = [](Element element, Shape shape) {
    return RuntimeShape({element, Leading::kSamples, std::move(shape)}, 3);
  };
  EXPECT_EQ(runtime(Element::kActivation, {8, 16}), (Shape{24, 16}));
  EXPECT_EQ(runtime(Element::kActivation, {5, 4, 16}), (Shape{60, 16}));
  EXPECT_EQ(runtime(Element::kActivation, {16}), (Shape{3, 16}));
  EXPECT_EQ(runtime(Element::kActivation, {}), (Shape{3}));
  EXPECT_EQ(runtime(Element::kFloat32, {8}), (Shape{24}));
  EXPECT_EQ(runtime(Element::kFloat32, {2, 8}), (Shape{6, 8}));
  EXPECT_EQ(runtime(Element::kIds, {8}), (Shape{24}));
  EXPECT_EQ(runtime(Element::kIds, {}), (Shape{3}));
  EXPECT_EQ(runtime(Element::kActivation, {5, 0}), (Shape{0, 0}));
  EXPECT_EQ(RuntimeShape(WeightType(Element::kFloat32, {5, 3, 2}), 3), (Shape{5, 3, 2}));
  EXPECT_EQ(RuntimeShape(WeightType(Element::kFloat32, {}), 3), Shape());
}

TEST(ValueTypes, HaveElementsBytesAndATextAtAnyRank) {
  const ValueType label{Element::kIds, Leading::kSamples, {}};
  EXPECT_EQ(TypeBytes(kRows, 3, DType::kBF16), 3 * 8 * 16 * 2);
  EXPECT_EQ(TypeElements(label, 3), 3);
  EXPECT_EQ(FormatType(label), "ids[n]");
  EXPECT_EQ(FormatType({Element::kIds, Leading::kSamples, {8}}), "ids[n, 8]");
  EXPECT_EQ(FormatType(ActivationType({32, 32, 3})), "activation[n, 32, 32, 3]");
  EXPECT_EQ(FormatType(WeightType(Element::kFloat32, {})), "float32[]");
}

}  // namespace
}  // namespace stagecoach
