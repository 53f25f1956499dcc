// data.mask_folder on files that the tests make.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/mask_folder.h"
#include "stage/data/picture_source_testing.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSide = 6;

class MaskFolderTest : public PictureSourceTest {
 protected:
  MaskFolderTest() {
    spec_.evaluation = {};
    SetNetwork(5);
    // A picture is grey 10 times its mask's numbers, so that what becomes of both is seen in each
    // pixel.
    for (int i = 0; i < 6; ++i) WritePair("a/" + std::to_string(i), i);
    WritePair("b", 6);
    Write("train/notes.txt", std::string("not a picture"));
    SetData();
  }
  void SetNetwork(int64_t classes) {
    network_.inputs = {{"images", 0}, {"masks", classes}};
    network_.wires = {{.type = ActivationType({kSide, kSide, 1})},
                      {.type = {Element::kIds, Leading::kSamples, {kSide, kSide}}}};
    network_.objective.targets = WireId(1);
  }
  void SetData(OnBadRecord on_bad_record = OnBadRecord::kFail, PictureFields pictures = {}) {
    spec_.data = MaskFolderData{.train = PathOf("train"),
                                .masks = PathOf("masks"),
                                .on_bad_record = on_bad_record,
                                .pictures = std::move(pictures)};
  }
  static Picture MaskOf(int i, int64_t height = kSide, int64_t width = kSide) {
    Picture mask(height, width, 1);
    for (size_t at = 0; at < mask.bytes.size(); ++at) {
      mask.bytes[at] = static_cast<uint8_t>((at / 2 + static_cast<size_t>(i)) % 5);
    }
    return mask;
  }
  void WritePair(const std::string& name, int i, int64_t height = kSide, int64_t width = kSide) {
    const Picture mask = MaskOf(i, height, width);
    Picture picture = mask;
    for (uint8_t& byte : picture.bytes) byte = static_cast<uint8_t>(byte * 10);
    Write("train/" + name + ".png", PngFile(picture));
    Write("masks/" + name + ".png", PngFile(mask));
  }
  // Images as bytes, and masks.
  struct Both {
    std::vector<int> images, masks;
    friend bool operator==(const Both&, const Both&) = default;
  };
  Both TakeBoth(const BatchSource& images, const BatchSource& masks, uint64_t steps) const {
    Both both;
    for (uint64_t step = 0; step < steps; ++step) {
      for (int32_t i = 0; i < spec_.training.micro_batches; ++i) {
        const auto image = images.Train(step, MicroBatchId(i), std::vector<std::string>{"images"});
        const auto mask = masks.Train(step, MicroBatchId(i), std::vector<std::string>{"masks"});
        EXPECT_TRUE(image.ok() && mask.ok()) << image.status() << mask.status();
        if (!image.ok() || !mask.ok()) continue;
        for (const float x : ValuesOf<float>(image->arrays.at(0))) {
          both.images.push_back(static_cast<int>(x * 255 + 0.5F));
        }
        for (const int32_t x : ValuesOf<int32_t>(mask->arrays.at(0))) both.masks.push_back(x);
      }
    }
    return both;
  }
  Both TakeBoth(uint64_t steps) {
    const auto images = Open({"images"}), masks = Open({"masks"});
    EXPECT_EQ(images->manifest(), masks->manifest());
    return TakeBoth(*images, *masks, steps);
  }
  absl::Status StepError(const std::vector<std::string>& reads) {
    return PictureSourceTest::StepError(*Open(reads), 3, reads);
  }
};

TEST_F(MaskFolderTest, MasksLieBeneathADataRootAsPicturesDo) {
  ReadOnlyFolder();
  EXPECT_NE(Open({"images", "masks"}), nullptr);
  spec_.data = MaskFolderData{.train = PathOf("train"), .masks = "/usr"};
  EXPECT_THAT(Refusal({"images"}), HasSubstr("data.mask_folder.masks = \"/usr\": is not beneath "));
}

TEST_F(MaskFolderTest, PicturesHaveTheMasksOfTheirNames) {
  const Both both = TakeBoth(2);
  ASSERT_EQ(both.images.size(), both.masks.size());
  ASSERT_EQ(both.masks.size(), 2u * 7 * kSide * kSide);
  for (size_t i = 0; i < both.masks.size(); ++i) EXPECT_EQ(both.images[i], 10 * both.masks[i]);
  EXPECT_EQ(Open({"images", "masks"})->manifest().train_samples, 7);
}

// Parts are as large as the network's image or larger, so that the nearest pixel is a picture's own
// where it is not mixed.
TEST_F(MaskFolderTest, WhatMovesAPictureMovesItsMask) {
  SetData(OnBadRecord::kFail, {.padding = 2, .flip = true, .decode_threads = 2});
  const Both both = TakeBoth(6);
  for (size_t i = 0; i < both.masks.size(); ++i) {
    ASSERT_EQ(both.images[i], 10 * both.masks[i]) << i;
  }
  EXPECT_NE(both.masks, std::vector<int>(both.masks.size(), both.masks[0]));
  SetData(OnBadRecord::kFail, {.padding = 2, .flip = true, .decode_threads = 0});
  EXPECT_TRUE(TakeBoth(6) == both) << "threads make no difference";
}

TEST_F(MaskFolderTest, ColoursAreThePicturesAlone) {
  const Both plain = TakeBoth(3);
  SetData(OnBadRecord::kFail, {.brightness = 0.5});
  const Both bright = TakeBoth(3);
  EXPECT_EQ(bright.masks, plain.masks);
  EXPECT_NE(bright.images, plain.images);
}

TEST_F(MaskFolderTest, BeyondTheBorderIsTheIgnoredClass) {
  network_.objective.ignored = 255;
  SetData(OnBadRecord::kFail, {.padding = 4});
  const Both both = TakeBoth(6);
  const auto ignored = std::count(both.masks.begin(), both.masks.end(), 255);
  EXPECT_GT(ignored, 0);
  for (size_t i = 0; i < both.masks.size(); ++i) {
    EXPECT_EQ(both.images[i], both.masks[i] == 255 ? 0 : 10 * both.masks[i]);
  }
}

TEST_F(MaskFolderTest, AMaskIsMadeSmallerByTheNearestPixels) {
  std::filesystem::remove_all(PathOf("train"));
  std::filesystem::remove_all(PathOf("masks"));
  Picture mask(2 * kSide, 2 * kSide, 1);
  for (int64_t y = 0; y < 2 * kSide; ++y) {
    for (int64_t x = 0; x < 2 * kSide; ++x) mask.row(y)[x] = x % 2 == 0 ? 4 : 1;
  }
  for (const char* name : {"1", "2"}) {
    Write(std::string("train/") + name + ".png", PngFile(mask));
    Write(std::string("masks/") + name + ".png", PngFile(mask));
  }
  EXPECT_THAT(TakeBoth(1).masks, Each(1)) << "a mean of 4 and 1 is no class";
}

TEST_F(MaskFolderTest, NumbersThatAreNoClassAreNamed) {
  Picture mask = MaskOf(1);
  mask.row(3)[2] = 5;
  Write("masks/a/1.png", PngFile(mask));
  EXPECT_THAT(std::string(StepError({"masks"}).message()),
              AllOf(HasSubstr("data.mask_folder.masks"), HasSubstr("a/1.png: 5 in row 3, column 2, "
                                                                   "is not below the 5 classes")));
  network_.objective.ignored = 5;
  EXPECT_TRUE(StepError({"masks"}).ok());
}

// Symptom: of binary masks of 0 and 255 the message said to ignore 255, and who did trained on
// background alone.
TEST_F(MaskFolderTest, TheForegroundOfABinaryMaskIsToBeStoredAsOne) {
  SetNetwork(2);
  for (const char* name : {"a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "b"}) {
    Picture mask = MaskOf(1);
    for (uint8_t& byte : mask.bytes) byte = byte > 2 ? 255 : 0;
    Write(absl::StrCat("masks/", name, ".png"), PngFile(mask));
  }
  EXPECT_THAT(std::string(StepError({"masks"}).message()),
              AllOf(HasSubstr("255 looks like the foreground of a binary mask: store it as 1"),
                    testing::Not(HasSubstr("ignore_index"))));
  network_.objective.ignored = 255;
  EXPECT_THAT(NoteOf(*Open({"masks"})),
              AllOf(HasSubstr("masks have no class but 0 and the ignored 255 (7 looked at)"),
                    HasSubstr("store it as 1 and take ignore_index away")));
  WritePair("b", 1);
  EXPECT_EQ(NoteOf(*Open({"masks"})), NoteOf(*Open({"images"}))) << "one of them has a class";
  network_.objective.ignored = -1;
  Picture other = MaskOf(1);
  other.row(0)[0] = 255;
  Write("masks/b.png", PngFile(other));
  SetNetwork(5);
  for (int i = 0; i < 6; ++i) WritePair("a/" + std::to_string(i), i);
  EXPECT_THAT(
      std::string(StepError({"masks"}).message()),
      HasSubstr("if 255 marks what has no class, set model.objective.cross_entropy.ignore_"));
}

TEST_F(MaskFolderTest, AMaskThatIsNoPngIsNamedAsWhatItIs) {
  std::filesystem::remove(PathOf("masks/b.png"));
  Write("masks/b.jpg", JpegFile(MaskOf(1)));
  for (const char* reads : {"images", "masks"}) {
    EXPECT_THAT(std::string(StepError({reads}).message()),
                HasSubstr("b.jpg: a mask has to be a PNG, whose numbers are kept as they are, and "
                          "this is a JPEG picture"));
  }
}

// The picture notes orientation 6 and has 21 x 13 pixels; its mask was drawn on what a viewer
// shows, 13 x 21.
TEST_F(MaskFolderTest, AMaskOfAnUprightPictureGoesWithExifOrientation) {
  std::filesystem::remove(PathOf("train/b.png"));
  Write("train/b.jpg", FileText(STAGECOACH_SOURCE_DIR "/stage/pictures/testdata/turned-6.jpg"));
  Write("masks/b.png", PngFile(MaskOf(1, 21, 13)));
  EXPECT_THAT(std::string(StepError({"images"}).message()),
              AllOf(HasSubstr("b.png: 13 x 21 pixels; its picture, "),
                    HasSubstr("has 21 x 13, and notes EXIF orientation 6"),
                    HasSubstr("set data.mask_folder.exif_orientation: true")));
  EXPECT_THAT(NoteOf(*Open({"masks"})), HasSubstr("1 of 7 pictures note in their EXIF"));
  spec_.data.attributes.Set("exif_orientation", true);
  EXPECT_TRUE(StepError({"images", "masks"}).ok()) << StepError({"images", "masks"});
}

TEST_F(MaskFolderTest, AMaskOfAnotherSizeIsNamedByWhoReadsThePicture) {
  Write("masks/b.png", PngFile(MaskOf(1, 3, 9)));
  EXPECT_THAT(std::string(StepError({"images"}).message()),
              AllOf(HasSubstr("b.png: 9 x 3 pixels; its picture, "), HasSubstr("has 6 x 6")));
}

TEST_F(MaskFolderTest, WhatHasNoPartnerIsNamed) {
  std::filesystem::remove(PathOf("masks/a/3.png"));
  EXPECT_THAT(Refusal({"masks"}), HasSubstr("/train\", a/3.png: has no mask, ")) << folder_.path();
  WritePair("a/3", 3);
  std::filesystem::remove_all(PathOf("masks/a"));
  EXPECT_THAT(Refusal({"masks"}), AllOf(HasSubstr("/train\", a/0.png: has no mask, "),
                                        HasSubstr("; 6 of 7 pictures have no mask")));
  for (int i = 0; i < 6; ++i) WritePair("a/" + std::to_string(i), i);
  std::filesystem::remove(PathOf("train/a/0.png"));
  EXPECT_THAT(Refusal({"images"}), HasSubstr("a/0.png: a mask without a picture in "));
}

TEST_F(MaskFolderTest, BadRecordsAreLeftOutAndCountedIfTheJobSaysSo) {
  std::filesystem::remove(PathOf("masks/a/0.png"));
  std::filesystem::remove(PathOf("train/a/1.png"));
  Write("masks/a/2.png", PngFile(MaskOf(1, 3, 9)));
  Write("masks/a/3.png", std::string("no picture"));
  Picture beyond = MaskOf(4);
  beyond.row(0)[0] = 77;
  Write("masks/a/4.png", PngFile(beyond));
  SetData(OnBadRecord::kSkip);
  const auto images = Open({"images"}), masks = Open({"masks"});
  EXPECT_EQ(images->manifest(), masks->manifest());
  EXPECT_EQ(images->manifest().train_samples, 2);
  EXPECT_EQ(images->bad_records(), 5);
  EXPECT_THAT(NoteOf(*masks), HasSubstr("5 bad records left out"));
  const Both both = TakeBoth(*images, *masks, 2);
  for (size_t i = 0; i < both.masks.size(); ++i) EXPECT_EQ(both.images[i], 10 * both.masks[i]);
}

TEST_F(MaskFolderTest, ATestFolderComesWithItsMasks) {
  std::filesystem::rename(PathOf("train/a"), PathOf("test"));
  std::filesystem::rename(PathOf("masks/a"), PathOf("test_masks"));
  spec_.data.attributes.Set("test", PathOf("test"));
  EXPECT_THAT(
      Refusal({"masks"}),
      HasSubstr("data.mask_folder.test_masks: not given; must name the folder of the masks"));
  spec_.data.attributes.Set("test_masks", PathOf("test_masks"));
  EXPECT_EQ(Open({"masks"})->manifest().evaluation_samples, 6);
}

TEST_F(MaskFolderTest, ANetworkWithOtherMasksIsRefused) {
  network_.wires[1].type.shape = {kSide, kSide + 1};
  EXPECT_THAT(Refusal({"masks"}), HasSubstr("gives masks of the images' size"));
  SetNetwork(257);
  EXPECT_THAT(Refusal({"masks"}), HasSubstr("gives 256 classes at most"));
}

}  // namespace
}  // namespace stagecoach
