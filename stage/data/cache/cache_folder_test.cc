#include "stage/data/cache/cache_folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::HasSubstr;

TEST(CacheFolder, AGivenOneIsMade) {
  const TemporaryFolder folder;
  const auto made = CacheFolder(*PosixFileSystem(), folder.File("a/b"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(std::filesystem::is_directory(folder.File("a/b")));
  EXPECT_THAT(CacheFolder(*PosixFileSystem(), folder.Write("file", "")).status().message(),
              AllOf(HasSubstr("--cache-dir = \""), HasSubstr("/file\": "), HasSubstr("give")));
}

// Everybody writes to the folder for temporary files: the name may be somebody else's.
TEST(CacheFolder, TheDefaultOneIsOursAlone) {
  const TemporaryFolder folder;
  ASSERT_EQ(setenv("TMPDIR", folder.path().c_str(), 1), 0);
  const std::string name = folder.File(absl::StrCat("stagecoach-cache-", geteuid()));
  const auto made = CacheFolder(*PosixFileSystem(), "");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*made, name);
  ASSERT_EQ(chmod(name.c_str(), 0777), 0);
  EXPECT_THAT(CacheFolder(*PosixFileSystem(), "").status(),
              StatusIs(StatusCode::kPermissionDenied, HasSubstr("others may write to it")));
  std::filesystem::remove(name);
  std::filesystem::create_directory_symlink(folder.MakeFolder("elsewhere"), name);
  EXPECT_THAT(CacheFolder(*PosixFileSystem(), "").status(),
              StatusIs(StatusCode::kPermissionDenied, HasSubstr("belongs to another user")));
  ASSERT_EQ(unsetenv("TMPDIR"), 0);
}

}  // namespace
}  // namespace stagecoach
