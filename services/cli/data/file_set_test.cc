// Which files of a machine become a data set, and which names do not.
#include "services/cli/data/file_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> PathsOf(const FileSet& set) {
  std::vector<std::string> paths;
  for (const LocalFile& file : set.files()) paths.push_back(file.path);
  return paths;
}

TEST(FileSetTest, AFolderIsWalkedByBytesAndHiddenNamesAreCounted) {
  const TemporaryFolder folder;
  folder.Write("in/b/2.jpg", "22");
  folder.Write("in/b-x", "1");
  folder.Write("in/a", "333");
  folder.Write("in/.cache/x", "4");
  folder.Write("in/b/.DS_Store", "5");
  FileSet set;
  ASSERT_TRUE(set.Add(folder.File("in"), "").ok());
  ASSERT_TRUE(set.Sort().ok());
  EXPECT_THAT(PathsOf(set), ElementsAre("a", "b-x", "b/2.jpg"));
  EXPECT_EQ(set.bytes(), 6);
  EXPECT_EQ(set.hidden(), 2);
  EXPECT_EQ(set.files()[2].here, folder.File("in/b/2.jpg"));
}

TEST(FileSetTest, AFileAndTheChosenOnesOfAFolder) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("one.txt", "1");
  folder.Write("model/a.safetensors", "2");
  folder.Write("model/a.bin", "3");
  FileSet set;
  ASSERT_TRUE(set.Add(file, "0/one.txt").ok());
  ASSERT_TRUE(set.Add(folder.File("model"), "1/model",
                      [](const std::string& name) { return name.ends_with(".safetensors"); })
                  .ok());
  ASSERT_TRUE(set.Sort().ok());
  EXPECT_THAT(PathsOf(set), ElementsAre("0/one.txt", "1/model/a.safetensors"));
}

absl::Status Added(const TemporaryFolder& folder, const FileSet::Takes& takes = {}) {
  return FileSet().Add(folder.File("in"), "", takes);
}

// Symptom: `submit` trained with the picture that a link leads to outside of the folder, and with other
// class numbers where one folder was empty; `local` refused both.
TEST(FileSetTest, FoldersAreReadAsTheirReadersReadThem) {
  const TemporaryFolder folder;
  folder.Write("elsewhere/x", "1");
  folder.Write("in/cats/1.png", "1");
  std::filesystem::create_symlink(folder.File("in/cats/1.png"), folder.File("in/cats/2.png"));
  FileSet set;
  ASSERT_TRUE(set.Add(folder.File("in"), "").ok());
  EXPECT_THAT(PathsOf(set), ElementsAre("cats/1.png", "cats/2.png"));

  std::filesystem::create_symlink(folder.File("elsewhere/x"), folder.File("in/cats/3.png"));
  EXPECT_THAT(Added(folder), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("in/cats/3.png: is a link out of the folder")));
  std::filesystem::remove(folder.File("in/cats/3.png"));
  std::filesystem::create_symlink(folder.File("in/cats"), folder.File("in/dogs"));
  EXPECT_THAT(Added(folder), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("in/dogs: is a link to a folder")));
  std::filesystem::remove(folder.File("in/dogs"));
  folder.Write("in/dogs/.hidden", "1");
  EXPECT_THAT(Added(folder),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in/dogs: has no file")));
}

// Hugging Face's cache has links to files beside the folder.
TEST(FileSetTest, LinksOfWeightsAreFollowedAndLoopsRefused) {
  const TemporaryFolder folder;
  folder.Write("elsewhere/x", "1");
  std::filesystem::create_directory(folder.File("in"));
  std::filesystem::create_symlink(folder.File("elsewhere/x"), folder.File("in/file"));
  std::filesystem::create_symlink(folder.File("elsewhere"), folder.File("in/folder"));
  const auto all = [](const std::string&) { return true; };
  FileSet set;
  ASSERT_TRUE(set.Add(folder.File("in"), "", all).ok());
  EXPECT_THAT(PathsOf(set), ElementsAre("file", "folder/x"));
  std::filesystem::create_symlink(folder.File("in"), folder.File("elsewhere/back"));
  EXPECT_THAT(Added(folder, all),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in/folder/back: is a link")));
}

TEST(FileSetTest, WhatIsNoDataNamesTheFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(FileSet().Add(folder.File("none"), "none"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(folder.File("none") + ": No such file")));
  std::filesystem::create_directory(folder.File("in"));
  ASSERT_EQ(mkfifo(folder.File("in/pipe").c_str(), 0600), 0);
  EXPECT_THAT(FileSet().Add(folder.File("in"), ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in/pipe: is no regular")));
  std::filesystem::remove(folder.File("in/pipe"));
  folder.Write("in/a\nb", "1");
  EXPECT_THAT(FileSet().Add(folder.File("in"), ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("control character")));
  std::filesystem::remove(folder.File("in/a\nb"));
  folder.Write("in/\xff", "1");
  EXPECT_THAT(FileSet().Add(folder.File("in"), ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not UTF-8")));
  EXPECT_THAT(FileSet().Add(folder.Write("x", "1"), ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a file")));
  EXPECT_THAT(FileSet().Add(folder.File("x"), "../x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want names")));
}

TEST(FileSetTest, TwoFilesOfOneNameAreRefused) {
  const TemporaryFolder folder;
  FileSet set;
  ASSERT_TRUE(set.Add(folder.Write("a/x", "1"), "x").ok());
  ASSERT_TRUE(set.Add(folder.File("a/x"), "x").ok());
  EXPECT_TRUE(set.Sort().ok()) << "the same file";
  ASSERT_TRUE(set.Add(folder.Write("b/x", "2"), "x").ok());
  EXPECT_THAT(set.Sort(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("b/x")));
}

}  // namespace
}  // namespace stagecoach
