#include "services/cli/trained/line_groups.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

constexpr GroupSizes kSizes = {16, 64};

TEST(LineGroups, ManyLinesMakeGroupsOfTheMostLines) {
  EXPECT_EQ(LinesOfGroup(10'000, 0, kSizes), 64);
  EXPECT_EQ(LinesOfGroup(505, 0, kSizes), 64) << "eight";
}

TEST(LineGroups, FewLinesMakeSmallerGroupsForSeveralStages) {
  EXPECT_EQ(LinesOfGroup(504, 0, kSizes), 63);
  EXPECT_EQ(LinesOfGroup(160, 0, kSizes), 20);
  EXPECT_EQ(LinesOfGroup(64, 0, kSizes), 16) << "four of no fewer";
}

TEST(LineGroups, TheUsersSizeIsTaken) {
  EXPECT_EQ(LinesOfGroup(10'000, 1, kSizes), 1);
  EXPECT_EQ(LinesOfGroup(64, 8, kSizes), 8);
  EXPECT_EQ(LinesOfGroup(100, 64, kSizes), 64);
  EXPECT_EQ(LinesOfGroup(10'000, 1000, kSizes), 1000);
}

TEST(LineGroups, AGroupHasNoMoreLinesThanThereAre) {
  EXPECT_EQ(LinesOfGroup(5, 0, kSizes), 5);
  EXPECT_EQ(LinesOfGroup(5, 64, kSizes), 5);
  EXPECT_EQ(LinesOfGroup(0, 0, kSizes), 1);
}

}  // namespace
}  // namespace stagecoach
