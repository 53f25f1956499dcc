#include "stage/backends/cuda/cudnn/attention/attention_layout.h"

#include <set>

#include "gtest/gtest.h"

namespace stagecoach::cudnn {
namespace {

constexpr AttentionProblem kSmall = {.sequences = 2, .context = 3, .heads = 4, .head_width = 5};

TEST(AttentionLayout, TheProblemSplitsTheWidthIntoHeads) {
  EXPECT_EQ(ProblemOf({.sequences = 2, .context = 3, .heads = 4, .width = 20}), kSmall);
}

TEST(AttentionLayout, EveryFieldOfTheProblemIsPartOfTheKey) {
  AttentionProblem sequences = kSmall, context = kSmall, heads = kSmall, head_width = kSmall;
  sequences.sequences = context.context = heads.heads = head_width.head_width = 9;
  for (const AttentionProblem& other : {sequences, context, heads, head_width}) {
    EXPECT_FALSE(other == kSmall);
  }
}

TEST(AttentionLayout, StridesAreThoseOfThePackedArrays) {
  const AttentionLayouts whole = LayoutsOf(kSmall, WholeOf(kSmall));
  EXPECT_EQ(whole.packed, (TensorLayout{{2, 4, 3, 5}, {3 * 60, 5, 60, 1}}));
  EXPECT_EQ(whole.out, (TensorLayout{{2, 4, 3, 5}, {3 * 20, 5, 20, 1}}));
  EXPECT_EQ(whole.log_sum_exp, (TensorLayout{{2, 4, 3, 1}, {12, 3, 1, 1}}));
  const AttentionLayouts heads = LayoutsOf(kSmall, {1, 2});
  EXPECT_EQ(heads.packed, (TensorLayout{{1, 2, 3, 5}, {3 * 60, 5, 60, 1}}));
  EXPECT_EQ(heads.log_sum_exp, (TensorLayout{{1, 2, 3, 1}, {6, 3, 1, 1}}));
}

void Collect(const TensorLayout& layout, int64_t start, std::multiset<int64_t>& elements) {
  for (int64_t b = 0; b < layout.dims[0]; ++b) {
    for (int64_t h = 0; h < layout.dims[1]; ++h) {
      for (int64_t s = 0; s < layout.dims[2]; ++s) {
        for (int64_t d = 0; d < layout.dims[3]; ++d) {
          elements.insert(start + b * layout.strides[0] + h * layout.strides[1] +
                          s * layout.strides[2] + d * layout.strides[3]);
        }
      }
    }
  }
}

// Each exactly once, and none beyond.
void ExpectAll(const std::multiset<int64_t>& elements, int64_t count) {
  ASSERT_EQ(static_cast<int64_t>(elements.size()), count);
  EXPECT_EQ(static_cast<int64_t>(std::set(elements.begin(), elements.end()).size()), count);
  EXPECT_EQ(*elements.begin(), 0);
  EXPECT_EQ(*elements.rbegin(), count - 1);
}

TEST(AttentionLayout, SlicesCoverEveryElementOnce) {
  const int64_t rows = kSmall.sequences * kSmall.context;
  for (const AttentionSlice slice : {AttentionSlice{2, 4}, {1, 4}, {1, 2}, {1, 1}}) {
    std::multiset<int64_t> qkv, out, log_sum_exp;
    const AttentionLayouts layouts = LayoutsOf(kSmall, slice);
    for (int64_t sequence = 0; sequence < kSmall.sequences; sequence += slice.sequences) {
      for (int64_t head = 0; head < kSmall.heads; head += slice.heads) {
        const SliceStart start = StartOf(kSmall, sequence, head);
        for (const int64_t from : {start.queries, start.keys, start.values}) {
          Collect(layouts.packed, from, qkv);
        }
        Collect(layouts.out, start.out, out);
        Collect(layouts.log_sum_exp, start.log_sum_exp, log_sum_exp);
      }
    }
    ExpectAll(qkv, rows * 3 * kSmall.width());
    ExpectAll(out, rows * kSmall.width());
    ExpectAll(log_sum_exp, rows * kSmall.heads);
  }
}

TEST(AttentionLayout, SlicesAreAsLargeAsTheRoomAllowsAndEqual) {
  constexpr int64_t kMiB = 1 << 20;
  const AttentionProblem gpt = {.sequences = 12, .context = 1024, .heads = 25, .head_width = 64};
  const auto choose = [&](int64_t heads) { return ChooseSlice(gpt, heads * 2 * kMiB); };
  EXPECT_EQ(choose(12 * 25), (AttentionSlice{12, 25}));
  EXPECT_EQ(choose(1000), (AttentionSlice{12, 25}));
  EXPECT_EQ(choose(12 * 25 - 1), (AttentionSlice{6, 25}));
  EXPECT_EQ(choose(5 * 25), (AttentionSlice{4, 25}));
  EXPECT_EQ(choose(25), (AttentionSlice{1, 25}));
  EXPECT_EQ(choose(24), (AttentionSlice{1, 5}));
  EXPECT_EQ(choose(4), (AttentionSlice{1, 1}));
  EXPECT_EQ(choose(0), (AttentionSlice{1, 1})) << "one head is the least there is";
}

TEST(AttentionLayout, ScoresOfLongContextsDoNotOverflow) {
  const AttentionProblem gpt = {
      .sequences = 64, .context = 1 << 17, .heads = 128, .head_width = 128};
  EXPECT_EQ(ChooseSlice(gpt, int64_t{256} << 20), (AttentionSlice{1, 1}));
  const SliceStart last = StartOf(gpt, 63, 127);
  EXPECT_GT(last.values, int64_t{1} << 38);
}

}  // namespace
}  // namespace stagecoach::cudnn
