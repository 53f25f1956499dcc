// What every operation promises of its cases: gradients for all that may need one, and what it says
// may be overwritten or added.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/lists/case_testing.h"
#include "network/lists/follow_testing.h"
#include "network/lists/lists.h"

namespace stagecoach {
namespace {

// Calls of the forward, of the backward, joint and in its parts, and of the commit.
std::vector<Call> CallsOf(const LayerLists& lists) {
  std::vector<Call> calls;
  for (const CallList* list : {&lists.forward, &lists.backward, &lists.input_gradient,
                               &lists.weight_gradient, &lists.commit}) {
    for (const ListedCall& listed : list->calls) calls.push_back(listed.call);
  }
  return calls;
}

// Each call of every case's forward and backward, with its types.
template <typename Check>
void ForEveryCall(Check check) {
  for (const OperationCase& of : AllCases()) {
    SCOPED_TRACE(of.name());
    if (!of.call.differentiable) {
      const auto inputs = TypesOf(of.call.inputs);
      const auto adds = TypesOf(of.call.adds);
      const auto outputs = of.operation->Types(of.call.attributes, inputs, adds);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      check(*of.operation, of.call.attributes, CallTypes{inputs, *outputs, adds});
      continue;
    }
    const LayerLists lists = Differentiate(GraphOfCase(of));
    for (const Call& call : CallsOf(lists)) {
      check(OperationNamed(call.operation), call.attributes, lists.TypesOf(call));
    }
  }
}

TEST(Cases, ReachEveryOperationOfTheCatalogue) {
  std::set<std::string> reached, all;
  ForEveryCall([&](const Operation& operation, const Attributes&, const CallTypes&) {
    reached.emplace(operation.name());
  });
  for (const Operation* operation : AllOperations()) {
    // No network calls an update (operations/updates/update_test.cc).
    if (!operation->name().ends_with("_update")) all.emplace(operation->name());
  }
  EXPECT_EQ(reached, all);
}

TEST(Cases, HaveListsThatCanBeFollowed) {
  for (const OperationCase& of : AllCases()) {
    if (!of.call.differentiable) continue;
    SCOPED_TRACE(of.name());
    ExpectListsCanBeFollowed(Differentiate(GraphOfCase(of)));
  }
}

TEST(Cases, GiveAGradientToAllButIds) {
  for (const OperationCase& of : AllCases()) {
    if (!of.call.differentiable) continue;
    const LayerLists lists = Differentiate(GraphOfCase(of));
    SCOPED_TRACE(of.name());
    for (size_t i = 0; i < lists.inputs.size(); ++i) {
      const ValueType& type = lists.value(lists.inputs[i]).type;
      const ValueId gradient = lists.input_gradients[i];
      EXPECT_EQ(gradient.valid(), type.element != Element::kIds) << "input " << i;
      if (gradient.valid()) {
        EXPECT_EQ(FormatType(lists.value(gradient).type), FormatType(type));
      }
    }
    std::multiset<ValueId> added;
    for (const CallList* list : {&lists.weight_gradient, &lists.commit}) {
      for (const ListedCall& listed : list->calls) {
        added.insert(listed.call.adds.begin(), listed.call.adds.end());
      }
    }
    std::multiset<ValueId> all;
    for (const auto* ids : {&lists.parameter_gradients, &lists.accumulators, &lists.states}) {
      all.insert(ids->begin(), ids->end());
    }
    EXPECT_EQ(added, all)
        << "every parameter's gradient is added to once, every state changed once";
  }
}

TEST(Cases, CostNothingNegative) {
  ForEveryCall(
      [](const Operation& operation, const Attributes& attributes, const CallTypes& types) {
        const Cost cost = operation.CostOf(attributes, types, 3);
        EXPECT_GE(cost.products, 0) << operation.name();
        EXPECT_GE(cost.flops, cost.products) << operation.name();
        EXPECT_GT(cost.flops, 0) << operation.name();
        EXPECT_GE(operation.Drawn(attributes, types), 0) << operation.name();
      });
}

TEST(Cases, OverwriteWhatHasTheOutputsSize) {
  ForEveryCall(
      [](const Operation& operation, const Attributes& attributes, const CallTypes& types) {
        for (const int i : operation.MayOverwrite(attributes)) {
          ASSERT_LT(static_cast<size_t>(i), types.inputs.size()) << operation.name();
          const ValueType &input = types.inputs[static_cast<size_t>(i)], &output = types.outputs[0];
          EXPECT_EQ(input.element, output.element) << operation.name();
          EXPECT_EQ(input.leading, output.leading) << operation.name();
          EXPECT_EQ(input.shape.elements(), output.shape.elements()) << operation.name();
        }
      });
}

TEST(Cases, WithASumGiveTheSameTypesAndAreNoMoreToBeAddedTo) {
  std::set<std::string> with_sum;
  ForEveryCall(
      [&](const Operation& operation, const Attributes& attributes, const CallTypes& types) {
        const std::optional<Attributes> sum = operation.WithSum(attributes);
        if (!sum.has_value()) return;
        with_sum.emplace(operation.name());
        std::vector<ValueType> inputs = types.inputs;
        inputs.push_back(types.outputs[0]);
        const auto outputs = operation.Types(*sum, inputs, types.adds);
        ASSERT_TRUE(outputs.ok()) << operation.name() << ": " << outputs.status();
        EXPECT_EQ(*outputs, types.outputs);
        EXPECT_FALSE(operation.WithSum(*sum).has_value());
        EXPECT_GT(operation.CostOf(*sum, {inputs, *outputs, {}}, 1).flops,
                  operation.CostOf(attributes, types, 1).flops);
      });
  EXPECT_THAT(with_sum, testing::Contains("rms_norm_input_gradient"));
}

TEST(Cases, InAnEvaluationGiveWhatATrainingGives) {
  for (const OperationCase& of : AllCases()) {
    const EvaluationForm form = of.operation->Evaluation(of.call.attributes);
    if (form.identity) continue;
    const std::vector<ValueType> inputs = TypesOf(of.call.inputs), adds = TypesOf(of.call.adds);
    const Operation& evaluated =
        form.operation.empty() ? *of.operation : OperationNamed(form.operation);
    const auto types = evaluated.Types(form.attributes, inputs, adds);
    ASSERT_TRUE(types.ok()) << of.name() << ": " << types.status();
    auto expected = *of.operation->Types(of.call.attributes, inputs, adds);
    if (!form.operation.empty()) expected.resize(1);
    EXPECT_EQ(*types, expected) << of.name();
    EXPECT_EQ(evaluated.Drawn(form.attributes, {inputs, *types, adds}), 0) << of.name();
  }
}

}  // namespace
}  // namespace stagecoach
