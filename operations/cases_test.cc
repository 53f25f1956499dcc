// What every operation promises of its cases: types, refusals that help, costs.
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/case_testing.h"

namespace stagecoach {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// Empty if it was accepted.
std::string RefusalOfCase(const OperationCase& of, const std::vector<ValueType>& inputs) {
  const auto types = of.operation->Types(of.call.attributes, inputs, TypesOf(of.call.adds));
  if (types.ok()) return "";
  EXPECT_EQ(types.status().code(), absl::StatusCode::kInvalidArgument) << of.name();
  return std::string(types.status().message());
}

TEST(Cases, HaveNamesThatTestsMayHave) {
  std::set<std::string> seen;
  for (const OperationCase& of : AllCases()) {
    EXPECT_TRUE(seen.insert(of.name()).second) << "two cases " << of.name();
    EXPECT_THAT(of.name(), testing::MatchesRegex("[a-z0-9_]+"));
    EXPECT_GT(of.call.samples, 0) << of.name();
  }
}

TEST(Cases, AreCallsThatAreAllowed) {
  for (const OperationCase& of : AllCases()) {
    EXPECT_TRUE(of.operation->CheckAttributes(of.call.attributes).ok()) << of.name();
    EXPECT_EQ(RefusalOfCase(of, TypesOf(of.call.inputs)), "") << of.name();
  }
}

// An operation of any number of operands gives something else then. Only attention's keys change no
// type.
TEST(Cases, WithAnOperandLessOrMoreAreRefused) {
  for (const OperationCase& of : AllCases()) {
    std::vector<ValueType> inputs = TypesOf(of.call.inputs);
    inputs.push_back(WeightType(Element::kFloat32, {3}));
    EXPECT_THAT(RefusalOfCase(of, inputs), AnyOf(HasSubstr("takes"), HasSubstr("must be")))
        << of.name();
    inputs.resize(inputs.size() - 2);
    const std::vector<ValueType> adds = TypesOf(of.call.adds);
    const auto types = of.operation->Types(of.call.attributes, inputs, adds);
    if (types.ok() && of.operation->name() == "attention") continue;
    if (types.ok()) {
      EXPECT_NE(*types, *of.operation->Types(of.call.attributes, TypesOf(of.call.inputs), adds))
          << of.name();
    } else {
      EXPECT_THAT(RefusalOfCase(of, inputs), HasSubstr("takes")) << of.name();
    }
    EXPECT_THAT(RefusalOfCase(of, {}), HasSubstr("takes")) << of.name();
  }
}

// Any operand as ids where it is none, or as numbers where it is ids; and one that is there once
// where each sample has its own, or the other way round.
TEST(Cases, WithAnOperandOfAnotherKindAreRefusedAndToldWhatWouldBeRight) {
  for (const OperationCase& of : AllCases()) {
    const std::vector<ValueType> inputs = TypesOf(of.call.inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::vector<ValueType> other = inputs;
      other[i].element = inputs[i].element == Element::kIds ? Element::kActivation : Element::kIds;
      EXPECT_THAT(RefusalOfCase(of, other), HasSubstr("must be")) << of.name() << " input " << i;
      other = inputs;
      other[i].leading = inputs[i].leading == Leading::kOne ? Leading::kSamples : Leading::kOne;
      EXPECT_THAT(RefusalOfCase(of, other), HasSubstr("must be")) << of.name() << " input " << i;
    }
  }
}

TEST(Cases, WithABufferOfAnotherKindAreRefusedAndToldWhatWouldBeRight) {
  for (const OperationCase& of : AllCases()) {
    const std::vector<ValueType> inputs = TypesOf(of.call.inputs), adds = TypesOf(of.call.adds);
    for (size_t i = 0; i < adds.size(); ++i) {
      for (const bool element : {true, false}) {
        std::vector<ValueType> other = adds;
        if (element) other[i].element = Element::kIds;
        if (!element) other[i].leading = Leading::kSamples;
        const auto types = of.operation->Types(of.call.attributes, inputs, other);
        EXPECT_THAT(std::string(types.status().message()), HasSubstr("must be"))
            << of.name() << " buffer " << i;
      }
    }
  }
}

TEST(Cases, HaveNoAttributeThatNobodyKnows) {
  for (const OperationCase& of : AllCases()) {
    Attributes attributes = of.call.attributes;
    attributes.Set("no_such_thing", true);
    EXPECT_THAT(std::string(of.operation->CheckAttributes(attributes).message()),
                HasSubstr("attribute no_such_thing is not known"))
        << of.name();
  }
}

TEST(Cases, CostWhatGrowsWithTheSamples) {
  for (const OperationCase& of : AllCases()) {
    const std::vector<ValueType> inputs = TypesOf(of.call.inputs), adds = TypesOf(of.call.adds);
    const CallTypes types{inputs, *of.operation->Types(of.call.attributes, inputs, adds), adds};
    const Cost one = of.operation->CostOf(of.call.attributes, types, 1);
    const Cost three = of.operation->CostOf(of.call.attributes, types, 3);
    EXPECT_GT(one.flops, 0) << of.name();
    EXPECT_GE(one.flops, one.products) << of.name();
    EXPECT_GE(one.products, 0) << of.name();
    EXPECT_EQ(three.flops, 3 * one.flops) << of.name();
    EXPECT_EQ(three.products, 3 * one.products) << of.name();
  }
}

}  // namespace
}  // namespace stagecoach
