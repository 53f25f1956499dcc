#include "services/common/http/answer_budget.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(AnswerBudget, APeerHasItsShareAndAllHaveTheSum) {
  AnswerBudget budget(16 * kMiB);
  EXPECT_TRUE(budget.Take("a", kMiB));
  EXPECT_TRUE(budget.Take("a", kMiB));
  EXPECT_FALSE(budget.Take("a", kMiB)) << "two are an eighth of all";
  EXPECT_TRUE(budget.Take("b", 10 * kMiB)) << "the only one of a peer may be large";
  EXPECT_FALSE(budget.Take("c", 5 * kMiB)) << "there are four left";
  EXPECT_TRUE(budget.Take("c", 4 * kMiB));
  EXPECT_FALSE(budget.Take("d", kMiB));
  budget.Give("b", 10 * kMiB);
  EXPECT_TRUE(budget.Take("d", kMiB));
  budget.Give("a", kMiB);
  EXPECT_TRUE(budget.Take("a", kMiB));
}

TEST(AnswerBudget, ASmallAnswerIsAlwaysGiven) {
  AnswerBudget budget(kMiB);
  EXPECT_TRUE(budget.Take("a", kMiB));
  EXPECT_TRUE(budget.Take("a", AnswerBudget::kAlways));
  EXPECT_TRUE(budget.Take("b", AnswerBudget::kAlways));
  EXPECT_FALSE(budget.Take("b", AnswerBudget::kAlways + 1));
}

}  // namespace
}  // namespace stagecoach
