#include "services/cli/pictures/picture_files.h"

#include <gmock/gmock.h>

#include "services/cli/pictures/trained_pictures_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PictureFilesTest : public TrainedPicturesTest {};

TEST_F(PictureFilesTest, AFolderIsAllPicturesBelowItByPath) {
  for (const char* name : {"in/b.png", "in/a/2.JPG", "in/a/1.jpeg", "in/.x.png", "in/.d/3.png",
                           "in/notes.txt", "in/a.d/4.png"}) {
    Write(name, std::string("x"));
  }
  const std::string single = Write("other.bin", std::string("x"));
  std::vector<std::string> below, problems;
  for (const PictureFile& file : FindPictures({single, PathOf("in"), PathOf("gone")})) {
    below.push_back(file.below);
    if (!file.problem.ok()) problems.emplace_back(file.problem.message());
  }
  EXPECT_THAT(below, ElementsAre("other.bin", "a.d/4.png", "a/1.jpeg", "a/2.JPG", "b.png", ""));
  EXPECT_THAT(problems, ElementsAre(PathOf("gone") + ": no such file or folder"));
}

TEST_F(PictureFilesTest, AFolderWithoutPicturesIsNamed) {
  Write("empty/notes.txt", std::string("x"));
  const std::vector<PictureFile> files = FindPictures({PathOf("empty")});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].problem.message(),
            PathOf("empty") + ": no JPEG, PNG, TIFF or WebP file below this folder");
  EXPECT_EQ(ReadPicture(files[0], 3, false).status(), files[0].problem);
}

// Symptom: `classify` said of a link to a picture that it is no regular file.
TEST_F(PictureFilesTest, ALinkIsThePictureThatItLeadsTo) {
  const Picture picture = MadeUpPicture(6, 9, 3);
  const std::string store = Write("store/0001", PngFile(picture));
  std::filesystem::create_directories(PathOf("in"));
  std::filesystem::create_symlink(store, PathOf("in/a.png"));
  std::filesystem::create_symlink(PathOf("gone"), PathOf("in/b.png"));
  const std::vector<PictureFile> files = FindPictures({PathOf("in")});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].below, "a.png");
  EXPECT_EQ(*ReadPicture(files[0], 3, false), picture);
  EXPECT_EQ(ReadPicture(files[1], 3, false).status().message(),
            PathOf("in/b.png") + ": No such file or directory");
}

TEST_F(PictureFilesTest, WhatCannotBeReadIsNamedWithItsReason) {
  const Picture picture = MadeUpPicture(6, 9, 3);
  const std::string good = Write("good.png", PngFile(picture));
  std::vector<uint8_t> cut = PngFile(picture);
  cut.resize(cut.size() - 20);
  const std::string bad = Write("bad\n.png", cut);
  const std::vector<PictureFile> files = FindPictures({good, bad});
  EXPECT_EQ(*ReadPicture(files[0], 3, false), picture);
  EXPECT_EQ(ReadPicture(files[0], 1, false)->channels, 1);
  EXPECT_THAT(std::string(ReadPicture(files[1], 3, false).status().message()),
              HasSubstr("bad\\x0a.png: PNG: the file is cut off"));
  std::filesystem::remove(good);
  EXPECT_FALSE(ReadPicture(files[0], 3, false).ok());
}

}  // namespace
}  // namespace stagecoach
