#include "stage/data/masked_tokens.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

constexpr int32_t kIds = 1000, kMask = 4, kEnd = 3, kBegin = 2, kIgnored = 0;

MaskedTokens::Rule RuleOf(double share) {
  MaskedTokens::Rule rule{.seed = 7, .share = share, .mask = kMask, .ignored = kIgnored};
  rule.control.assign(kIds, false);
  for (int32_t id = 0; id < 5; ++id) rule.control[static_cast<size_t>(id)] = true;
  for (int32_t id = 0; id < kIds; id += 2) rule.tokens.push_back(id);  // the odd ones have no piece
  return rule;
}

struct Masked {
  std::vector<int32_t> inputs, targets;
  friend bool operator==(const Masked&, const Masked&) = default;
};

Masked Of(const MaskedTokens::Rule& rule, const std::vector<int32_t>& tokens,
          const MaskPlace& place = {.sample = 5, .epoch = 1}) {
  Masked masked;
  MaskedTokens(rule).Add(tokens, place, &masked.inputs, &masked.targets);
  return masked;
}

// A sentence and its end, again and again.
std::vector<int32_t> Text(size_t tokens) {
  std::vector<int32_t> text;
  for (size_t i = 0; i < tokens; ++i) {
    text.push_back(i % 10 == 9 ? kEnd : static_cast<int32_t>(5 + i % 900));
  }
  return text;
}

// Of 20,000 tokens, the shares within four deviations.
TEST(MaskedTokens, HaveTheSharesOfThePaper) {
  const std::vector<int32_t> text = Text(20'000);
  const Masked masked = Of(RuleOf(0.15), text);
  double found = 0, mask = 0, same = 0;
  std::set<int32_t> others;
  for (size_t i = 0; i < text.size(); ++i) {
    if (masked.targets[i] == kIgnored) {
      EXPECT_EQ(masked.inputs[i], text[i]) << i;
      continue;
    }
    EXPECT_EQ(masked.targets[i], text[i]) << i;
    EXPECT_NE(text[i], kEnd) << "control tokens stay";
    ++found;
    mask += masked.inputs[i] == kMask ? 1 : 0;
    same += masked.inputs[i] == text[i] ? 1 : 0;
    if (masked.inputs[i] == kMask || masked.inputs[i] == text[i]) continue;
    EXPECT_EQ(masked.inputs[i] % 2, 0) << "an id that has a piece";
    others.insert(masked.inputs[i]);
  }
  EXPECT_GT(others.size(), 150u) << "any token, of 270 that are drawn among 500";
  EXPECT_GT(*others.rbegin(), 980);
  EXPECT_NEAR(found / 18'000, 0.15, 4 * 0.0027);
  EXPECT_NEAR(mask / found, 0.8, 4 * 0.0077);
  EXPECT_NEAR(same / found, 0.1, 4 * 0.0058);
}

TEST(MaskedTokens, AreOtherOnesInEachEpochAndSample) {
  const std::vector<int32_t> text = Text(200);
  const auto at = [&text](const MaskPlace& place) { return Of(RuleOf(0.3), text, place); };
  const Masked first = at({.sample = 1, .epoch = 0});
  EXPECT_NE(first, at({.sample = 1, .epoch = 1}));
  EXPECT_NE(first, at({.sample = 2, .epoch = 0}));
  EXPECT_NE(first, at({.sample = 1}));
  EXPECT_NE(first, at({.sample = 1, .epoch = uint64_t{1} << 32}));
  EXPECT_NE(first, at({.sample = 1 | uint64_t{1} << 32, .epoch = 0}));
}

// The numbers of docs/formats.md.
TEST(MaskedTokens, StayAsTheyAre) {
  MaskedTokens::Rule rule = RuleOf(0.5);
  rule.begin = kBegin;
  const Masked masked = Of(rule, {10, 11, 12, 13, 14, kEnd, 16, 17}, {.sample = 0, .epoch = 0});
  EXPECT_THAT(masked.inputs, ElementsAre(kBegin, kMask, 11, kMask, 13, 14, kEnd, 16, kMask));
  EXPECT_THAT(masked.targets, ElementsAre(0, 10, 0, 12, 0, 0, 0, 0, 17));
}

TEST(MaskedTokens, OfEveryTokenLeaveControlTokens) {
  const Masked masked = Of(RuleOf(0.999999999), {7, kEnd, 8});
  EXPECT_THAT(masked.targets, ElementsAre(7, kIgnored, 8));
}

}  // namespace
}  // namespace stagecoach
