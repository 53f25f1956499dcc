#include "services/cli/local/scratch_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

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

// `translate --local-stages 2` ended with an abort.
TEST(ScratchFolder, OfATmpdirThatIsNoFolderIsRefused) {
  const char* const before = getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/no-such-folder", 1);
  const absl::Status status = ScratchFolder::Make("test").status();
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(testing::StartsWith("TMPDIR = \""),
                                                            testing::EndsWith("; name a folder")));
}

TEST(ScratchFolder, TwoAreNotOne) {
  EXPECT_NE((*ScratchFolder::Make("test"))->path(), (*ScratchFolder::Make("test"))->path());
}

}  // namespace
}  // namespace stagecoach
