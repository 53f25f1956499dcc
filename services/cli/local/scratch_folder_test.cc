#include "services/cli/local/scratch_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stagecoach {
namespace {

TEST(ScratchFolder, IsGoneWithAllInItUnlessItIsKept) {
  for (const bool kept : {false, true}) {
    std::string path;
    {
      const auto folder = ScratchFolder::Make("test");
      ASSERT_TRUE(folder.ok()) << folder.status();
      path = (*folder)->path();
      EXPECT_THAT(path, testing::HasSubstr("/stagecoach-test-"));
      std::ofstream(path + "/file") << "text";
      EXPECT_TRUE(std::filesystem::exists(path + "/file"));
      if (kept) (*folder)->Keep();
    }
    EXPECT_EQ(std::filesystem::exists(path), kept);
    std::filesystem::remove_all(path);
  }
}

TEST(ScratchFolder, TwoAreNotOne) {
  EXPECT_NE((*ScratchFolder::Make("test"))->path(), (*ScratchFolder::Make("test"))->path());
}

}  // namespace
}  // namespace stagecoach
