#include "decoding/continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Continuation, GoesOnUntilAStop) {
  Continuation continuation({2, 3}, 10);
  EXPECT_FALSE(continuation.ended());
  EXPECT_TRUE(continuation.Add({7, -0.5}));
  EXPECT_TRUE(continuation.Add({7, -0.25}));
  EXPECT_FALSE(continuation.ended());
  EXPECT_FALSE(continuation.Add({3, -1}));
  EXPECT_TRUE(continuation.ended());
  EXPECT_THAT(continuation.tokens(), ElementsAre(7, 7));
  EXPECT_EQ(continuation.sum(), -1.75);
}

TEST(Continuation, IsOverAfterTheMostTokensWithoutAnEnd) {
  Continuation continuation({}, 2);
  EXPECT_TRUE(continuation.Add({0, -1}));
  EXPECT_FALSE(continuation.Add({1, -1}));
  EXPECT_FALSE(continuation.ended());
  EXPECT_THAT(continuation.tokens(), ElementsAre(0, 1));
}

TEST(Continuation, MayStopInPlaceOfTheLastToken) {
  Continuation continuation({2}, 1);
  EXPECT_FALSE(continuation.Add({2, -1}));
  EXPECT_TRUE(continuation.ended());
  EXPECT_THAT(continuation.tokens(), IsEmpty());
}

TEST(Continuation, DiesOfATokenAfterTheLast) {
  Continuation stopped({2}, 5), full({2}, 1);
  stopped.Add({2, -1});
  full.Add({1, -1});
  EXPECT_DEATH(stopped.Add({1, -1}), "token 1 after the last one");
  EXPECT_DEATH(full.Add({2, -1}), "token 2 after the last one");
  EXPECT_DEATH(Continuation({}, 0), "most_tokens");
}

}  // namespace
}  // namespace stagecoach
