#include "stage/link/grpc/newest_incarnations.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace stagecoach {
namespace {

using Incarnation = NewestIncarnations::Incarnation;

TEST(NewestIncarnationsTest, AnOlderOneChangesNothing) {
  NewestIncarnations newest;
  newest.Accept("a", {2, 5});
  newest.Accept("a", {1, 9});
  EXPECT_EQ(newest.Of("a"), std::optional(Incarnation(2, 5)));
  newest.Accept("a", {2, 6});
  EXPECT_EQ(newest.Of("a"), std::optional(Incarnation(2, 6)));
  EXPECT_EQ(newest.Of("b"), std::nullopt);
}

// Symptom: a stage that worked for ever more jobs kept an entry of each for ever.
TEST(NewestIncarnationsTest, TheJobThatWasAcceptedLongestAgoIsForgotten) {
  NewestIncarnations newest;
  newest.Accept("long", {1, 1});
  newest.Accept("first", {1, 1});
  for (size_t job = 2; job < NewestIncarnations::kMostJobs; ++job) {
    newest.Accept(std::to_string(job), {1, 1});
  }
  newest.Accept("long", {1, 2});
  newest.Accept("one more", {1, 1});
  EXPECT_EQ(newest.Of("first"), std::nullopt);
  EXPECT_EQ(newest.Of("long"), std::optional(Incarnation(1, 2)));
  EXPECT_NE(newest.Of("one more"), std::nullopt);
}

}  // namespace
}  // namespace stagecoach
