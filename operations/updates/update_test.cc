// Updates' operands, and the numbers of their formulas.
#include "operations/updates/update.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/catalogue.h"
#include "operations/updates/adamw_update.h"
#include "operations/updates/lamb_update.h"
#include "operations/updates/sgd_update.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

const ValueType kMatrix = WeightType(Element::kFloat32, {4, 3});
const ValueType kCopy = WeightType(Element::kActivation, {4, 3});

std::string RefusalOfUpdate(const std::string& operation, const Attributes& attributes,
                            const std::vector<ValueType>& inputs,
                            const std::vector<ValueType>& adds) {
  const auto types = OperationNamed(operation).Types(attributes, inputs, adds);
  return types.ok() ? "" : std::string(types.status().message());
}

TEST(Updates, ChangeGradientValueAndStatesAndMayHaveARoundedCopy) {
  const Attributes momentum = ToAttributes(SgdUpdateAttributes{.momentum = 0.9});
  EXPECT_EQ(RefusalOfUpdate("sgd_update", {}, {}, {kMatrix, kMatrix}), "");
  EXPECT_EQ(RefusalOfUpdate("sgd_update", {}, {}, {kMatrix, kMatrix, kCopy}), "");
  EXPECT_EQ(RefusalOfUpdate("sgd_update", momentum, {}, {kMatrix, kMatrix, kMatrix, kCopy}), "");
  EXPECT_EQ(RefusalOfUpdate("sgd_update", momentum, {}, {kMatrix, kMatrix}),
            "sgd_update reads 0 and changes 2 operands; it takes none to read, and to change "
            "gradient, value, velocity [, copy]");
  EXPECT_EQ(RefusalOfUpdate("sgd_update", momentum, {}, {kMatrix, kMatrix, kCopy}),
            "velocity is activation[4, 3]; must be float32[4, 3]");
  EXPECT_EQ(RefusalOfUpdate("sgd_update", {}, {}, {kMatrix, WeightType(Element::kFloat32, {3, 4})}),
            "gradient is float32[4, 3]; must be float32[3, 4]");
}

// So no network can call one: its calls have nothing to change.
TEST(Updates, OfNothingAreRefused) {
  for (const Operation* operation : AllOperations()) {
    if (!operation->name().ends_with("_update")) continue;
    for (const size_t inputs : {0, 1, 2, 4}) {
      const std::vector<ValueType> read(inputs, kMatrix);
      EXPECT_THAT(RefusalOfUpdate(std::string(operation->name()), {}, read, {}), HasSubstr("takes"))
          << operation->name() << " of " << inputs;
    }
  }
}

TEST(Updates, CostByTheElement) {
  for (const Operation* operation : AllOperations()) {
    if (!operation->name().ends_with("_update")) continue;
    const CallTypes one{{kMatrix}, {}, {kMatrix, kMatrix}};
    ValueType twice = WeightType(Element::kFloat32, {8, 3});
    const int64_t flops = operation->CostOf({}, one, 1).flops;
    EXPECT_GT(flops, 0) << operation->name();
    EXPECT_EQ(operation->CostOf({}, {{twice}, {}, {twice, twice}}, 1).flops, 2 * flops);
    EXPECT_EQ(operation->CostOf({}, one, 1).products, 0);
  }
}

TEST(Updates, AdamWsCorrectionsAreOfTheUpdatesThatTheStatesHaveSeen) {
  const AdamWUpdateAttributes attributes{.beta1 = 0.9, .beta2 = 0.99};
  EXPECT_FLOAT_EQ(NumbersOf(attributes, {.applied = 0}).correction1, 0.1f);
  EXPECT_FLOAT_EQ(NumbersOf(attributes, {.applied = 0}).correction2, 0.01f);
  EXPECT_FLOAT_EQ(NumbersOf(attributes, {.applied = 1}).correction1, 0.19f);
}

TEST(Updates, LambsRateIsThatOfTheNormsWhereTheyGiveOne) {
  EXPECT_EQ(LambRate(true, 0.5f, 16.0, 4.0), 1.0f);
  EXPECT_EQ(LambRate(false, 0.5f, 16.0, 4.0), 0.5f);
  EXPECT_EQ(LambRate(true, 0.5f, 0.0, 4.0), 0.5f);
  EXPECT_EQ(LambRate(true, 0.5f, 16.0, 0.0), 0.5f);
  EXPECT_EQ(LambRate(true, 0.5f, 1e300, 1e-300), 0.5f) << "no finite ratio";
  EXPECT_EQ(LambRate(true, 100.0f, 1e76, 1.0), 100.0f) << "no finite rate";
}

}  // namespace
}  // namespace stagecoach
