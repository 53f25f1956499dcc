// Measures of the reference's cross entropy where logits are equal or not numbers: every back end is held to it.
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/cross_entropy.h"
#include "stage/backends/conformance/case_table.h"

namespace stagecoach::conformance {
namespace {

// Rows that count, right ones and those among the best two, of one row of three logits.
std::vector<float> MeasuresOf(const std::vector<float>& logits, int target) {
  const CrossEntropyAttributes attributes{.accuracy = true, .top = 2};
  const CaseCalls calls = CallsOfCase({&OperationNamed("cross_entropy"),
                                       {.name = "row",
                                        .attributes = ToAttributes(attributes),
                                        .inputs = {Samples({3}), IdsBelow(3, {})},
                                        .samples = 1,
                                        .differentiable = false}});
  const auto reference = MakeReferenceBackend(BackendOptions{});
  Bench bench(*reference);
  CaseTable table(bench, calls);
  table.Set(calls.operands[0], logits);
  table.Set(calls.operands[1], {static_cast<float>(target)});
  table.Run(calls.forward[0]);
  const std::vector<float> sums = table.Values(calls.outputs[0]);
  return {sums.begin() + 1, sums.end()};
}

TEST(ReferenceCrossEntropy, CountsATargetThatIsNotANumberAsWrong) {
  using testing::ElementsAre;
  for (const int target : {0, 1, 2}) {
    EXPECT_THAT(MeasuresOf({NAN, NAN, NAN}, target), ElementsAre(1, 0, 0)) << target;
  }
  EXPECT_THAT(MeasuresOf({NAN, 1, 2}, 0), ElementsAre(1, 0, 0));
  EXPECT_THAT(MeasuresOf({NAN, 1, 2}, 2), ElementsAre(1, 0, 1)) << "another one's";
}

TEST(ReferenceCrossEntropy, PutsTheLowerOfEqualClassesFirst) {
  using testing::ElementsAre;
  EXPECT_THAT(MeasuresOf({1, 1, 1}, 0), ElementsAre(1, 1, 1));
  EXPECT_THAT(MeasuresOf({1, 1, 1}, 1), ElementsAre(1, 0, 1));
  EXPECT_THAT(MeasuresOf({1, 1, 1}, 2), ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace stagecoach::conformance
