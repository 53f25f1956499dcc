// data.image_folder on files that the tests make.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/testing/file_text.h"
#include "base/testing/status_is.h"
#include "base/threads/progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/image_folder.h"
#include "stage/data/picture_source_testing.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ImageFolderTest : public PictureSourceTest {
 protected:
  ImageFolderTest() {
    SetImage({8, 8, 3}, 3);
    // Grey 10, 20, ... so that the first number tells which picture it is.
    int grey = 10;
    for (const char* name : {"train/ape/b.png", "train/ape/deep/a.PNG", "train/ape/z.png",
                             "train/bee/1.png", "train/bee/2.png", "train/cow/x.png"}) {
      Write(name, GreyPng(grey));
      grey += 10;
    }
    Write("train/bee/notes.txt", std::string("not a picture"));
    Write("train/bee/.hidden.png", std::string("not a picture"));
    Write("train/readme", std::string("not a class"));
    Write("test/ape/1.png", GreyPng(100));
    Write("test/bee/1.png", GreyPng(110));
    Write("test/cow/1.png", GreyPng(120));
    SetData();
  }
  void SetData(OnBadRecord on_bad_record = OnBadRecord::kFail, int64_t threads = 1) {
    spec_.data = ImageFolderData{.train = PathOf("train"),
                                 .test = PathOf("test"),
                                 .on_bad_record = on_bad_record,
                                 .pictures = {.decode_threads = threads}};
  }
};

TEST_F(ImageFolderTest, ClassesAndPicturesAreInTheOrderOfTheirNames) {
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 6);
  EXPECT_EQ(source->manifest().evaluation_samples, 3);
  const Taken test = TakeAll(*source, false, 0, 1);
  EXPECT_THAT(FirstBytes(test), ElementsAre(100, 110, 120));
  EXPECT_THAT(test.labels, ElementsAre(0, 1, 2));
  const Taken train = TakeAll(*source, true, 0, 6);
  const std::vector<int> labels = {0, 0, 0, 1, 1, 2};
  const std::vector<int> greys = FirstBytes(train);
  for (size_t n = 0; n < greys.size(); ++n) {
    const auto place = static_cast<int>(PermuteIndex(42, n / 6, 6, n % 6));
    EXPECT_EQ(greys[n], 10 * (place + 1));
    EXPECT_EQ(train.labels[n], labels[static_cast<size_t>(place)]);
  }
}

// The first mini-batches, which a short evaluation and the page take, were of the first class
// alone.
TEST_F(ImageFolderTest, HeldOutClassesComeInTurn) {
  Write("test/ape/2.png", GreyPng(101));
  Write("test/ape/3.png", GreyPng(102));
  Write("test/cow/2.png", GreyPng(121));
  const Taken test = TakeAll(*Open(), false, 0, 2);
  EXPECT_THAT(FirstBytes(test), ElementsAre(100, 110, 120, 101, 121, 102));
  EXPECT_THAT(test.labels, ElementsAre(0, 1, 2, 0, 2, 0));
}

TEST_F(ImageFolderTest, PicturesOfAnySizeAndFormatBecomeTheNetworks) {
  Write("test/ape/1.png", PngFile(MadeUpPicture(40, 25, 1)));
  Write("test/bee/1.png", JpegFile(MadeUpPicture(9, 100, 3)));
  EXPECT_EQ(TakeAll(*Open(), false, 0, 1).images.size(), 3u * 8 * 8 * 3);
}

TEST_F(ImageFolderTest, WithoutATestFolderEveryTenthPictureIsHeldOut) {
  for (int i = 0; i < 8; ++i) Write("train/cow/y" + std::to_string(i) + ".png", GreyPng(150 + i));
  spec_.data.attributes.Set("test", std::string());
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 13);
  EXPECT_THAT(FirstBytes(TakeAll(*source, false, 0, 1)), ElementsAre(153))
      << "the tenth of fourteen";
}

TEST_F(ImageFolderTest, StagesThatReadOnePartAgreeAboutTheList) {
  for (const OnBadRecord on_bad_record : {OnBadRecord::kFail, OnBadRecord::kSkip}) {
    SetData(on_bad_record);
    EXPECT_EQ(Open({"labels"})->manifest(), Open({"images"})->manifest());
  }
  std::set<std::string> digests = {Open()->manifest().sha256};
  Write("train/cow/y.png", GreyPng(70));
  digests.insert(Open()->manifest().sha256);
  std::filesystem::rename(PathOf("train/cow/y.png"), PathOf("train/bee/y.png"));
  digests.insert(Open()->manifest().sha256);
  Write("test/cow/1.png", PngFile(MadeUpPicture(9, 9, 3)));
  digests.insert(Open()->manifest().sha256);
  EXPECT_EQ(digests.size(), 4u);
}

TEST_F(ImageFolderTest, ABadRecordFailsTheStepThatNeedsItWithFileAndReason) {
  std::vector<uint8_t> cut = JpegFile(MadeUpPicture(30, 30, 3));
  cut.resize(cut.size() / 2);
  Write("train/bee/2.png", cut);
  for (const int64_t threads : {0, 2}) {
    SetData(OnBadRecord::kFail, threads);
    const auto source = Open();
    EXPECT_THAT(
        StepError(*source, 3),
        StatusIs(absl::StatusCode::kDataLoss,
                 AllOf(HasSubstr("data.image_folder.train = \""),
                       HasSubstr("/train\", bee/2.png: JPEG: Premature end of input file"))));
    EXPECT_EQ(source->bad_records(), 0);
    EXPECT_TRUE(
        Open({"labels"})->Train(0, MicroBatchId(0), std::vector<std::string>{"labels"}).ok());
  }
}

// All that can be wrong with a file, and what is left.
TEST_F(ImageFolderTest, BadRecordsAreLeftOutCountedAndNamed) {
  Write("elsewhere.png", GreyPng(200));
  std::filesystem::create_symlink(PathOf("elsewhere.png"), PathOf("train/ape/c.png"));
  std::filesystem::create_symlink("../bee/1.png", PathOf("train/ape/d.png"));
  std::filesystem::create_symlink("nowhere.png", PathOf("train/ape/e.png"));
  Write("train/bee/2.png", std::string("GIF89a"));
  std::vector<uint8_t> cut = GreyPng(60);
  cut.resize(cut.size() - 5);
  Write("train/cow/x.png", cut);
  Write("train/cow/y.png", std::string());
  Write("train/cow/z.png", GreyPng(70));
  SetData(OnBadRecord::kSkip, 2);
  const auto source = Open();
  EXPECT_EQ(source->bad_records(), 5);
  EXPECT_EQ(source->manifest().train_samples, 6);
  EXPECT_THAT(NoteOf(*source),
              AllOf(HasSubstr("5 bad records left out: data.image_folder.train = \""),
                    HasSubstr("ape/c.png: a link out of the folder, to "),
                    HasSubstr("ape/e.png: a link to a file that is not there"),
                    HasSubstr("bee/2.png: a GIF picture, not JPEG"),
                    HasSubstr("cow/x.png: PNG: the file is cut off"),
                    HasSubstr("cow/y.png: an empty file, not")));
  // ape/d.png is a link to bee/1.png and another picture of class 0.
  const Taken taken = TakeAll(*source, true, 0, 6);
  const std::vector<int> greys = FirstBytes(taken), six(greys.begin(), greys.begin() + 6);
  EXPECT_THAT(six, testing::UnorderedElementsAre(10, 20, 30, 40, 40, 70));
  // Who reads labels alone leaves out the same ones.
  const auto labels = Open({"labels"});
  EXPECT_EQ(labels->manifest(), source->manifest());
  EXPECT_EQ(labels->bad_records(), 5);
  for (int32_t i = 0; i < 3; ++i) {
    const std::vector<std::string> names = {"labels"};
    EXPECT_EQ(labels->Train(1, MicroBatchId(i), names)->arrays,
              source->Train(1, MicroBatchId(i), names)->arrays);
  }
}

// Symptom: a link in the data was a way to every file of the machine that is a picture.
TEST_F(ImageFolderTest, BeneathADataRootNoLinkIsFollowed) {
  ReadOnlyFolder();
  EXPECT_EQ(Open()->bad_records(), 0);
  std::filesystem::create_symlink("../bee/1.png", PathOf("train/ape/d.png"));
  SetData(OnBadRecord::kSkip, 2);
  const auto source = Open();
  EXPECT_EQ(source->bad_records(), 1);
  EXPECT_THAT(NoteOf(*source), AllOf(HasSubstr("ape/d.png\": a link, to ../bee/1.png, and"),
                                     HasSubstr("--data-follow-links")));
  std::filesystem::create_directory_symlink(PathOf("test/cow"), PathOf("train/dog"));
  EXPECT_THAT(Refusal(), HasSubstr("train\", dog: a link; put the folder itself there"));
  std::filesystem::remove(PathOf("train/dog"));
  spec_.data.attributes.Set("train", std::string("/usr"));
  EXPECT_THAT(
      TryOpen({"images"}).status(),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr("data.image_folder.train = \"/usr\": "), HasSubstr("--data-root"))));
}

// A message goes through protobuf strings, logs and terminals.
TEST_F(ImageFolderTest, NamesThatAreNoTextAreShownAsTheirBytes) {
  Write("train/bee/\xc1\x1b[31m.png", std::string("x"));
  EXPECT_THAT(std::string(StepError(*Open(), 3).message()),
              HasSubstr("bee/\\xc1\\x1b[31m.png: text, not JPEG"));
  Write("train/\xff\n/1.png", GreyPng(1));
  EXPECT_THAT(Refusal(), HasSubstr("the class of \"\\xff\\x0a\", 3, is not below"));
}

TEST_F(ImageFolderTest, OnlyTheFirstBadRecordsAreNamed) {
  for (int i = 0; i < 9; ++i) Write("train/cow/bad" + std::to_string(i) + ".png", std::string("x"));
  SetData(OnBadRecord::kSkip);
  EXPECT_THAT(NoteOf(*Open()), AllOf(HasSubstr("9 bad records"), HasSubstr("bad4.png"),
                                     Not(HasSubstr("bad5.png")), HasSubstr("; and 4 more")));
}

// A header of a few bytes that says 60,000 x 60,000 pixels.
TEST_F(ImageFolderTest, APictureThatIsTooLargeIsABadRecord) {
  std::vector<uint8_t> jpeg = JpegFile(MadeUpPicture(8, 8, 3));
  for (size_t at = 0; at + 8 < jpeg.size(); ++at) {
    if (jpeg[at] != 0xff || jpeg[at + 1] != 0xc0) continue;
    for (const size_t side : {at + 5, at + 7}) {
      jpeg[side] = 60000 >> 8;
      jpeg[side + 1] = 60000 & 0xff;
    }
  }
  Write("train/bee/huge.jpg", jpeg);
  EXPECT_THAT(std::string(StepError(*Open(), 3).message()),
              HasSubstr("bee/huge.jpg: JPEG: a picture of 60000 x 60000 pixels; at most"));
  SetData(OnBadRecord::kSkip);
  EXPECT_EQ(Open()->bad_records(), 1);
}

// Symptom: with evaluation.every_epochs and training.until, and too few pictures to hold one out, a
// job trained to its last step without one evaluation and without a word. Cause: only
// evaluation.every_steps was asked for.
TEST_F(ImageFolderTest, AJobThatEvaluatesByEpochsNeedsSomethingToHoldOutToo) {
  spec_.data = ImageFolderData{.train = PathOf("train")};  // six pictures
  for (const EvaluationSpec& evaluation :
       {EvaluationSpec{.every_steps = 1, .batches = 1}, {.batches = 1, .every_epochs = 0.5}}) {
    spec_.evaluation = evaluation;
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("no picture to evaluate with"),
                                 HasSubstr("or no evaluation (evaluation.every_steps, ")));
  }
  spec_.evaluation = {};
  EXPECT_NE(Open(), nullptr);
}

TEST_F(ImageFolderTest, AFileThatGoesAwayFailsTheStepThatNeedsIt) {
  SetData(OnBadRecord::kSkip, 0);
  const auto source = Open();
  std::filesystem::remove(PathOf("train/cow/x.png"));
  EXPECT_THAT(StepError(*source, 3),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cow/x.png\": No such file")));
}

TEST_F(ImageFolderTest, FoldersThatAreNotClassesAreRefused) {
  std::filesystem::create_directories(PathOf("train/dog"));
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("/train\", dog: a class with no JPEG, PNG, TIFF or WebP files"),
                    HasSubstr("put some there or take the folder away")));
  std::filesystem::remove(PathOf("train/dog"));
  std::filesystem::create_directory_symlink(PathOf("test/cow"), PathOf("train/dog"));
  EXPECT_THAT(Refusal(), HasSubstr("dog: a link to a folder"));
  std::filesystem::remove(PathOf("train/dog"));
  Write("train/dog/1.png", GreyPng(1));
  EXPECT_THAT(Refusal(),
              HasSubstr("4 folders, the class of \"dog\", 3, is not below the classes of "
                        "model.resnet, 3; give a network of 4 classes"));
  std::filesystem::remove_all(PathOf("train/dog"));
  std::filesystem::remove_all(PathOf("test/bee"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("/test\": class 1 is \"cow\", in "),
                               HasSubstr("it is \"bee\"; give folders with the same classes")));
  spec_.data.attributes.Set("train", PathOf("gone"));
  EXPECT_TRUE(absl::IsNotFound(TryOpen({"labels"}).status()));
  spec_.data.attributes.Set("train", PathOf("test/ape"));
  EXPECT_THAT(Refusal(), HasSubstr("has no folders"));
}

// Symptom: of a folder with .webp, .bmp, .tif and .jfif beside .png half was left out, and nothing
// said so.
TEST_F(ImageFolderTest, WhatIsNotReadIsCountedByEndingAndReason) {
  EXPECT_THAT(NoteOf(*Open({"labels"})),
              HasSubstr("/train\": left out: 1 .txt; 1 with a dot in front; 1 without an ending, "
                        "beside the folders of the classes"));
  Write("train/bee/a.webp", WebpFile(MadeUpPicture(8, 8, 3)));
  Write("train/bee/b.tif", TiffFile(MadeUpPicture(8, 8, 3)));
  Write("train/bee/c.jfif", JpegFile(MadeUpPicture(8, 8, 3)));
  for (const char* name : {"train/ape/1.BMP", "train/ape/2.bmp", "train/cow/3.gif"}) {
    Write(name, std::string("not looked at"));
  }
  SetData(OnBadRecord::kSkip);
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 9);
  EXPECT_EQ(source->bad_records(), 0) << NoteOf(*source);
  EXPECT_THAT(NoteOf(*source),
              AllOf(HasSubstr("left out: 2 .bmp, a format that is not read: write PNG; 1 "),
                    HasSubstr("1 .gif, a format that is not read: write PNG")));
}

// Symptom: a link to a folder within a class was passed over.
TEST_F(ImageFolderTest, ALinkWithinAClassIsReadOrRefused) {
  std::filesystem::create_directory_symlink(PathOf("test/cow"), PathOf("train/ape/deep/more"));
  EXPECT_THAT(Refusal(),
              HasSubstr("ape/deep/more: a link to a folder; put the folder itself there"));
  std::filesystem::remove(PathOf("train/ape/deep/more"));
  std::filesystem::create_symlink(PathOf("train/readme"), PathOf("train/ape/deep/more"));
  EXPECT_THAT(NoteOf(*Open({"labels"})), HasSubstr("1 without an ending; "));
}

TEST_F(ImageFolderTest, ASetWithoutAGoodPictureIsRefusedWithCountFileAndReason) {
  for (const char* name :
       {"ape/b.png", "ape/deep/a.PNG", "ape/z.png", "bee/1.png", "bee/2.png", "cow/x.png"}) {
    Write(std::string("train/") + name, std::string("GIF89a"));
  }
  SetData(OnBadRecord::kSkip);
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("no picture to train on: 6 bad records were left out, the first: "),
                    HasSubstr("train\", ape/b.png: a GIF picture, not JPEG")));
}

// The picture of testdata notes orientation 6 and has 21 x 13 pixels.
TEST_F(ImageFolderTest, APictureIsTurnedIfTheJobSaysSoAndCountedIfNot) {
  Write("train/bee/1.png", FileText(STAGECOACH_SOURCE_DIR "/stage/pictures/testdata/turned-6.jpg"));
  EXPECT_THAT(NoteOf(*Open()),
              AllOf(HasSubstr("1 of 6 pictures note in their EXIF that they were turned"),
                    HasSubstr("set exif_orientation: true")));
  const Taken stored = TakeAll(*Open(), true, 0, 1);
  spec_.data.attributes.Set("exif_orientation", true);
  const auto upright = Open();
  EXPECT_THAT(NoteOf(*upright), Not(HasSubstr("EXIF")));
  EXPECT_NE(TakeAll(*upright, true, 0, 1), stored);
}

TEST_F(ImageFolderTest, TellsItsClassesAndWhatItMeasured) {
  EXPECT_EQ(Open()->facts(), (DataFacts{.classes = {"ape", "bee", "cow"}}));
  spec_.data.attributes.Set("measure", true);
  const DataFacts facts = Open()->facts();
  ASSERT_EQ(facts.mean.size(), 3u);
  EXPECT_NEAR(facts.mean[0], 35 / 255.0, 1e-12) << "of 10, 20, ..., 60";
  EXPECT_NEAR(facts.deviation[2], 17.0782512765 / 255, 1e-10);
  EXPECT_TRUE(Open({"labels"})->facts().mean.empty()) << "who reads no images measures none";
  Write("train/c\xff\n/1.png", GreyPng(1));
  Write("test/c\xff\n/1.png", GreyPng(1));
  SetImage({8, 8, 3}, 4);
  EXPECT_THAT(Open()->facts().classes, testing::Contains("c\\xff\\x0a"))
      << "names travel as text, and a terminal takes none of them for a command";
}

TEST_F(ImageFolderTest, ShowsTheFirstHeldOutPicturesSmall) {
  Write("test/bee/1.png", PngFile(MadeUpPicture(200, 150, 3)));
  SetImage({160, 100, 3}, 3);
  spec_.data.attributes.Set("flip", true);
  spec_.data.attributes.Set("brightness", 0.5);
  const std::vector<std::string> shown = Open()->Shown();
  ASSERT_EQ(shown.size(), 3u);
  const auto read = [&](size_t i) {
    return DecodePicture(
        std::span(reinterpret_cast<const uint8_t*>(shown[i].data()), shown[i].size()), 3);
  };
  const auto second = read(1);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->height, 64);
  EXPECT_EQ(second->width, 40);
  EXPECT_THAT(read(0)->bytes, testing::Each(100)) << "as an evaluation sees it";
  EXPECT_TRUE(Open({"labels"})->Shown().empty());
  Write("test/bee/1.png", std::string("no picture"));
  EXPECT_EQ(Open()->Shown()[1], "") << "whoever evaluates it is told why";
}

TEST_F(ImageFolderTest, OpeningTicks) {
  ProgressCounter counter;
  const ProgressScope scope(&counter);
  SetData(OnBadRecord::kSkip, 0);
  Open();
  EXPECT_GE(counter.count(), 12u) << "one a file, and one a picture that is looked at";
}

}  // namespace
}  // namespace stagecoach
