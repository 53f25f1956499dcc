#include "stage/snapshot/available_memory.h"

#include <limits>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

constexpr char kMeminfo[] = "MemTotal:       1000 kB\nMemAvailable:    600 kB\nSwapFree: 9 kB\n";

TEST(AvailableMemoryTest, IsWhatMachineAndContainerCanGive) {
  EXPECT_EQ(AvailableMemory(kMeminfo, "max\n", "100\n", ""), 600 * 1024);
  EXPECT_EQ(AvailableMemory(kMeminfo, "", "", ""), 600 * 1024);
  EXPECT_EQ(AvailableMemory(kMeminfo, "4096\n", "1096\n", ""), 3000);
  EXPECT_EQ(AvailableMemory(kMeminfo, "4096\n", "5000\n", ""), 0);
  EXPECT_EQ(AvailableMemory(kMeminfo, "4096\n", "4000\n",
                            "anon 5\ninactive_file 1000\nactive_file 500\n"),
            1596)
      << "files that were read are no use of memory that stays";
  EXPECT_EQ(AvailableMemory(kMeminfo, "4096\n", "4000\n",
                            "inactive_file 1\ntotal_inactive_file 1000\ntotal_active_file 500\n"),
            1596);
  EXPECT_EQ(AvailableMemory("", "", "", ""), std::numeric_limits<int64_t>::max());
  EXPECT_GT(AvailableMemory(), 0);
}

TEST(AvailableMemoryTest, FindsTheControlGroup) {
  EXPECT_EQ(MemoryGroup("0::/system.slice/stage.service\n"), "/system.slice/stage.service");
  EXPECT_EQ(MemoryGroup("12:cpu,cpuacct:/a\n5:memory:/docker/x\n0::/b\n"), "/memory/docker/x");
  EXPECT_EQ(MemoryGroup("0::/\n"), "/");
  EXPECT_EQ(MemoryGroup(""), "");
}

TEST(AvailableMemoryTest, LeavesAsMuchAsItTakes) {
  EXPECT_TRUE(CheckMemory(50, 100).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(CheckMemory(51, 100)));
}

}  // namespace
}  // namespace stagecoach
