#include "services/coordinator/watch/folder_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include "base/testing/manual_clock.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string RoomWritten(const FolderRoom& room) {
  MetricWriter writer;
  room.Write(writer);
  return writer.Text();
}

TEST(FolderRoom, IsWhatTheFileSystemSays) {
  struct statvfs seen {};
  ASSERT_EQ(statvfs("/", &seen), 0);
  const std::optional<Room> room = RoomOf("/");
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->size_bytes, static_cast<double>(seen.f_blocks * seen.f_frsize));
  EXPECT_GT(room->free_bytes, 0);
  EXPECT_LE(room->free_bytes, room->size_bytes);
}

TEST(FolderRoom, AFolderThatIsGoneIsLeftOut) {
  const FolderRoom room({{"checkpoints", "/"}, {"state", "/nowhere/at/all"}});
  EXPECT_THAT(RoomWritten(room),
              AllOf(HasSubstr("stagecoach_folder_free_bytes{folder=\"checkpoints\"}"),
                    HasSubstr("stagecoach_folder_size_bytes{folder=\"checkpoints\"}"),
                    Not(HasSubstr("folder=\"state\""))));
}

// A network file system whose server is away does not answer: its last value would look healthy.
TEST(FolderRoom, WhatWasSaidLongAgoIsNotShownAnyMore) {
  ManualClock clock;
  const FolderRoom room({{"checkpoints", "/"}}, &clock);
  EXPECT_THAT(RoomWritten(room), Not(IsEmpty()));
  clock.AdvanceNanos(static_cast<int64_t>(1e9 * (FolderRoom::kStaleSeconds + 1)));
  EXPECT_THAT(RoomWritten(room), IsEmpty());
}

}  // namespace
}  // namespace stagecoach
