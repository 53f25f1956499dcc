#include "stage/runtime/stage_mailbox.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

// Next is asked only then by who must not wait in it.
TEST(StageMailbox, SaysWhetherNextWouldWait) {
  StageMailbox mailbox(2);
  EXPECT_FALSE(mailbox.HasWork());
  ASSERT_TRUE(mailbox.Post(ReleaseRequest{{.job = "a"}, [](const absl::Status&) {}}).ok());
  EXPECT_TRUE(mailbox.HasWork());
  EXPECT_TRUE(mailbox.Next().has_value());
  EXPECT_FALSE(mailbox.HasWork());
  EXPECT_TRUE(
      mailbox.Abort({.job = "a", .term = 1, .generation = 1}, absl::AbortedError("why")).ok());
  EXPECT_TRUE(mailbox.HasWork()) << "an abort to look at";
  EXPECT_FALSE(mailbox.Next().has_value());
  EXPECT_FALSE(mailbox.HasWork());
  mailbox.Wake();
  EXPECT_FALSE(mailbox.HasWork()) << "a link's news are for a running step";
  mailbox.Close();
  EXPECT_TRUE(mailbox.HasWork());
}

// One abort of term 2^64 - 1, by whoever has the coordinator's certificate, left the stage deaf to
// the coordinator for good.
TEST(StageMailbox, ObeysNoTermAboveTheCoordinators) {
  StageMailbox mailbox(8);
  const auto release = [&](uint64_t term) {
    return mailbox.Post(ReleaseRequest{{.job = "a", .term = term}, [](const absl::Status&) {}});
  };
  const auto abort = [&](uint64_t term) {
    return mailbox.Abort({.job = "a", .term = term}, absl::AbortedError("why"));
  };
  EXPECT_TRUE(release(7).ok()) << "no coordinator has said its term yet";
  mailbox.KnowTerm(8);
  EXPECT_TRUE(release(8).ok());
  EXPECT_TRUE(release(5).ok()) << "an older one is refused by what is loaded";
  EXPECT_TRUE(absl::IsUnavailable(release(9)));
  EXPECT_TRUE(absl::IsUnavailable(abort(~uint64_t{0})));
  EXPECT_TRUE(mailbox.AbortOf({.job = "a", .term = 8}).ok());
  EXPECT_EQ(mailbox.newest_term(), 0u) << "it would be told on, and shut the coordinator out";
  LoadRequest load;
  load.command.fence = {.job = "a", .term = 9};
  load.done = [](const absl::StatusOr<LoadResult>&) {};
  EXPECT_TRUE(absl::IsUnavailable(mailbox.Post(LoadRequest(load))));
  mailbox.KnowTerm(9);
  EXPECT_TRUE(mailbox.Post(std::move(load)).ok());
  EXPECT_EQ(mailbox.newest_term(), 9u);
  mailbox.KnowTerm(3);
  EXPECT_TRUE(abort(9).ok()) << "a coordinator whose journal went back takes nothing away";
}

}  // namespace
}  // namespace stagecoach
