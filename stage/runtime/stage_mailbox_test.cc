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
  mailbox.Abort({.job = "a", .term = 1, .generation = 1}, absl::AbortedError("why"));
  EXPECT_TRUE(mailbox.HasWork()) << "an abort to look at";
  EXPECT_FALSE(mailbox.Next().has_value());
  EXPECT_FALSE(mailbox.HasWork());
  mailbox.Wake();
  EXPECT_FALSE(mailbox.HasWork()) << "a link's news are for a running step";
  mailbox.Close();
  EXPECT_TRUE(mailbox.HasWork());
}

}  // namespace
}  // namespace stagecoach
