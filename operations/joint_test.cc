#include "operations/joint.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/catalogue.h"
#include "operations/norms/layer_norm.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ValueType kNormed = ActivationType({8, 16});
const ValueType kOfColumns = WeightType(Element::kFloat32, {16});
const ValueType kOfRows{Element::kFloat32, Leading::kSamples, {8}};
const std::vector<ValueType> kNormOperands = {kNormed, kNormed, kOfColumns, kOfRows, kOfRows};

const Operation& Joint() { return OperationNamed("layer_norm_gradient"); }

TEST(JointOperation, TakesWhatItsPartsTake) {
  const auto types =
      Joint().Types({}, kNormOperands, std::vector<ValueType>{kOfColumns, kOfColumns});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_THAT(*types, ElementsAre(kNormed));
  EXPECT_THAT(
      std::string(
          Joint().Types({}, kNormOperands, std::vector<ValueType>{kOfColumns}).status().message()),
      HasSubstr("layer_norm_weight_gradient has 1 operands; it takes 2: d_weight, d_bias"));
  EXPECT_THAT(std::string(Joint().Types({}, {}, {}).status().message()),
              HasSubstr("layer_norm_input_gradient has 0 operands"));
  EXPECT_FALSE(OperationNamed("layer_norm_input_gradient").Parts());
}

TEST(JointOperation, CostsWhatItsPartsCost) {
  const CallTypes types = {kNormOperands, {kNormed}, {kOfColumns, kOfColumns}};
  const CallTypes weights = WeightPartOf(*Joint().Parts(), types);
  EXPECT_THAT(weights.inputs, ElementsAre(kNormed, kNormed, kOfRows, kOfRows));
  EXPECT_EQ(weights.adds.size(), 2u);
  EXPECT_EQ(Joint().CostOf({}, types, 3).flops,
            OperationNamed("layer_norm_input_gradient")
                    .CostOf({}, {kNormOperands, {kNormed}, {}}, 3)
                    .flops +
                OperationNamed("layer_norm_weight_gradient").CostOf({}, weights, 3).flops);
}

// The part that has attributes decides which there are.
TEST(JointOperation, HasTheAttributesOfTheInputsPart) {
  const Attributes sum = ToAttributes(LayerNormGradientAttributes{.residual = true});
  EXPECT_EQ(Joint().WithSum({}), sum);
  EXPECT_FALSE(Joint().WithSum(sum).has_value());
  EXPECT_TRUE(Joint().CheckAttributes(sum).ok());
  Attributes unknown;
  unknown.Set("axis", int64_t{1});
  EXPECT_THAT(std::string(Joint().CheckAttributes(unknown).message()),
              HasSubstr("attribute axis is not known"));
}

}  // namespace
}  // namespace stagecoach
