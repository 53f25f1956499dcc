#include "devices/card/attention_slices.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

TEST(AttentionSlices, AreAsLargeAsTheRoomAllowsAndEqual) {
  constexpr int64_t kRoom = int64_t{256} << 20;
  EXPECT_EQ(LargestAttentionSlice(12, 1024, 25, kRoom), (AttentionSlice{4, 25}));
  EXPECT_EQ(LargestAttentionSlice(12, 8192, 25, kRoom), (AttentionSlice{1, 1}));
  EXPECT_EQ(LargestAttentionSlice(1, 4096, 32, kRoom), (AttentionSlice{1, 8}));
  EXPECT_EQ(LargestAttentionSlice(2, int64_t{1} << 40, 8, kRoom), (AttentionSlice{1, 1}))
      << "scores beyond 64 bits";
}

TEST(AttentionSlices, TakeTwoBytesForEachPairOfRowsOfAHead) {
  EXPECT_EQ(ScoreBytesOf({4, 25}, 1024), 4 * 25 * 2 * 1024 * 1024);
}

}  // namespace
}  // namespace stagecoach
