#include "services/common/grpc/access/token_guesses.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing/manual_clock.h"

namespace stagecoach {
namespace {

constexpr char kHere[] = "10.0.0.1", kThere[] = "10.0.0.2";
constexpr int kGuesses = static_cast<int>(TokenGuesses::kStock);

class TokenGuessesTest : public ::testing::Test {
 protected:
  // New ones from here; how many of them were looked up.
  int Guess(int count) {
    int looked_up = 0;
    for (int i = 0; i < count; ++i) {
      const std::string digest = absl::StrCat("guess-", guessed_++);
      if (!guesses_.MayTry(kHere, digest)) continue;
      ++looked_up;
      guesses_.Failed(kHere, digest);
    }
    return looked_up;
  }

  int guessed_ = 0;
  ManualClock clock_{1'000'000'000};
  TokenGuesses guesses_{&clock_};
};

TEST_F(TokenGuessesTest, ThirtyAtOnceThenOneASecondFromAnAddress) {
  EXPECT_EQ(Guess(1000), kGuesses);
  clock_.AdvanceNanos(2'500'000'000);
  EXPECT_EQ(Guess(1000), 2);
  EXPECT_TRUE(guesses_.MayTry(kThere, "any"));
}

// The story: one program with an old token behind a shared address kept everybody there out, with
// right tokens too.
TEST_F(TokenGuessesTest, ARepeatCostsNothingAndIsLookedUpWhateverIsLeft) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(guesses_.MayTry(kHere, "old"));
    guesses_.Failed(kHere, "old");
  }
  EXPECT_EQ(Guess(1000), kGuesses - 1);
  EXPECT_FALSE(guesses_.MayTry(kHere, "right")) << "or guesses would not be slowed at all";
  EXPECT_TRUE(guesses_.MayTry(kHere, "old"));
  EXPECT_TRUE(guesses_.MayTry(kHere, "guess-0")) << "its answer is known, and was paid for";
  clock_.AdvanceNanos(1'100'000'000);
  EXPECT_TRUE(guesses_.MayTry(kHere, "right"));
}

TEST_F(TokenGuessesTest, OneAddressPaysForItself) {
  guesses_.Failed(kThere, "old");
  EXPECT_EQ(Guess(1000), kGuesses);
  EXPECT_FALSE(guesses_.MayTry(kHere, "old")) << "nobody paid for it here";
}

TEST_F(TokenGuessesTest, WhatIsRememberedHasAnEnd) {
  guesses_.Failed(kHere, "old");
  for (size_t i = 0; i < 2 * TokenGuesses::kMostTried; ++i) {
    if (i == TokenGuesses::kMostTried / 2) guesses_.Failed(kHere, "old");
    guesses_.Failed(kHere, absl::StrCat("other-", i));
  }
  EXPECT_FALSE(guesses_.MayTry(kHere, "other-0"));
  EXPECT_FALSE(guesses_.MayTry(kHere, "old"));
  EXPECT_TRUE(guesses_.MayTry(kHere, absl::StrCat("other-", 2 * TokenGuesses::kMostTried - 1)));
  for (size_t i = 0; i < TokenGuesses::kMostAddresses; ++i) {
    guesses_.Failed(absl::StrCat("address-", i), "any");
  }
  EXPECT_FALSE(guesses_.MayTry(kHere, absl::StrCat("other-", 2 * TokenGuesses::kMostTried - 1)));
}

}  // namespace
}  // namespace stagecoach
