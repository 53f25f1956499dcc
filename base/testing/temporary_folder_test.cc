// Symptom: DecodeTiff.StripsTilesAndPlanesGiveTheSamePicture failed now and then. Cause: it wrote
// to a fixed path in the folder for temporary files, and so did another test at the same time.
#include "base/testing/temporary_folder.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/testing/file_text.h"

namespace stagecoach {
namespace {

TEST(TemporaryFolder, FilesOfOneNameInTwoFoldersAreTwoFiles) {
  const TemporaryFolder one, other;
  const std::string written = one.Write("written.tif", "one");
  other.Write("written.tif", "other");
  EXPECT_EQ(written, one.File("written.tif"));
  EXPECT_EQ(FileText(written), "one");
  EXPECT_EQ(FileText(other.File("written.tif")), "other");
}

TEST(TemporaryFolder, GoesWithAllItHolds) {
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    folder.Write("deep/down/bytes", std::vector<uint8_t>{0, 255});
    EXPECT_EQ(FileText(folder.File("deep/down/bytes")), std::string("\0\xff", 2));
    std::filesystem::create_directory_symlink("/", folder.MakeFolder("links") + "/root");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A write that fails unseen would be a failure of another line.
TEST(TemporaryFolderDeathTest, AFileThatCannotBeWrittenEndsTheTest) {
  const TemporaryFolder folder;
  EXPECT_DEATH(folder.Write(".", "a folder"), folder.path());
}

}  // namespace
}  // namespace stagecoach
