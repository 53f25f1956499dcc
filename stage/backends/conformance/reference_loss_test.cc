// Measures of the reference's cross entropy where logits are equal or not numbers: every back end
// is held to it.
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/losses/cross_entropy.h"
#include "operations/losses/loss_types.h"
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

// Of six rows, one of weight 0 and one whose target is ignored: right, targets, guesses. A class of
// weight 0 had no counts, so a mean IoU was 0.0501 where scikit-learn says 0.0720.
TEST(ReferenceCrossEntropy, CountsClassByClass) {
  const CrossEntropyAttributes attributes{.ignore_index = 7, .weighted = true, .mean_iou = true};
  CaseOperand weights = LossWeights(IdsBelow(3, {}).type);
  const CaseCalls calls = CallsOfCase({&OperationNamed("cross_entropy"),
                                       {.name = "rows",
                                        .attributes = ToAttributes(attributes),
                                        .inputs = {Samples({3}), IdsBelow(3, {}), weights},
                                        .samples = 6,
                                        .differentiable = false}});
  const auto reference = MakeReferenceBackend(BackendOptions{});
  Bench bench(*reference);
  CaseTable table(bench, calls);
  table.Set(calls.operands[0], {5, 1, 1,    // 0, which is right
                                1, 4, 1,    // 1 for 0
                                2, 2, 2,    // the lowest, 0, for 2
                                1, NAN, 9,  // none for 2
                                9, 1, 1,    // weighs nothing, and is right
                                9, 1, 1});  // is ignored
  table.Set(calls.operands[1], {0, 0, 2, 2, 0, 7});
  table.Set(calls.operands[2], {1, 0.5, 2, 1, 0, 1});
  table.Run(calls.forward[0]);
  const std::vector<float> sums = table.Values(calls.outputs[0]);
  EXPECT_THAT(std::vector<float>(sums.begin() + 2, sums.end()),
              testing::ElementsAre(2, 3, 3, 0, 0, 1, 0, 2, 0))
      << "each target counts as one, whatever it weighs";
}

TEST(ReferenceCrossEntropy, PutsTheLowerOfEqualClassesFirst) {
  using testing::ElementsAre;
  EXPECT_THAT(MeasuresOf({1, 1, 1}, 0), ElementsAre(1, 1, 1));
  EXPECT_THAT(MeasuresOf({1, 1, 1}, 1), ElementsAre(1, 0, 1));
  EXPECT_THAT(MeasuresOf({1, 1, 1}, 2), ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace stagecoach::conformance
