// data.cifar on files that the tests make.
#include <set>
#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/cifar.h"
#include "stage/data/picture_source_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kCifarPixels = 32 * 32;

// Records first, first + 1, ...: the label is i % 10, red is i, green the row, blue the column.
std::string CifarRecordsText(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    text += static_cast<char>(i % 10);
    text += std::string(kCifarPixels, static_cast<char>(i));
    for (int at = 0; at < kCifarPixels; ++at) text += static_cast<char>(at / 32);
    for (int at = 0; at < kCifarPixels; ++at) text += static_cast<char>(at % 32);
  }
  return text;
}

class CifarSourceTest : public PictureSourceTest {
 protected:
  CifarSourceTest() {
    Write("data_batch_1.bin", CifarRecordsText(0, 20));
    Write("data_batch_2.bin", CifarRecordsText(20, 11));
    Write("test_batch.bin", CifarRecordsText(100, 12));
    Write("batches.meta.txt", std::string("airplane"));
    SetData({});
  }
  void SetData(PictureFields fields) {
    spec_.data = CifarData{.folder = folder_.path(), .pictures = std::move(fields)};
  }
  // Which records they are, by red.
  std::vector<int> Reds(const Taken& taken) const { return FirstBytes(taken); }
};

TEST_F(CifarSourceTest, RecordsComeInTheOrderOfTheSeedWithTheirLabels) {
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 31);
  EXPECT_EQ(source->manifest().evaluation_samples, 12);
  const Taken taken = TakeAll(*source, true, 0, 9);
  const std::vector<int> reds = Reds(taken);
  ASSERT_EQ(reds.size(), 63u);
  for (uint64_t n = 0; n < 63; ++n) {
    EXPECT_EQ(reds[n], static_cast<int>(PermuteIndex(42, n / 31, 31, n % 31)));
    EXPECT_EQ(taken.labels[n], reds[n] % 10);
  }
  EXPECT_EQ(std::set<int>(reds.begin(), reds.begin() + 31).size(), 31u) << "each once an epoch";
}

TEST_F(CifarSourceTest, BeneathADataRootNoLinkIsFollowed) {
  ReadOnlyFolder();
  EXPECT_EQ(Open()->manifest().train_samples, 31);
  std::filesystem::create_symlink("data_batch_1.bin", PathOf("data_batch_3.bin"));
  EXPECT_THAT(Refusal(), HasSubstr("data_batch_3.bin\": a link, to data_batch_1.bin, and"));
  spec_.data = CifarData{.folder = "/usr"};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.cifar.folder = \"/usr\": is not beneath "),
                               HasSubstr("--data-root")));
}

TEST_F(CifarSourceTest, PlanesBecomePixels) {
  const Taken taken = TakeAll(*Open(), false, 0, 1);
  EXPECT_THAT(Reds(taken), ElementsAre(100, 101, 102, 103, 104, 105, 106));
  EXPECT_THAT(taken.labels, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  for (const int at : {0, 37, 1023}) {
    EXPECT_EQ(taken.images[3 * at + 1], static_cast<float>(at / 32 / 255.0));
    EXPECT_EQ(taken.images[3 * at + 2], static_cast<float>(at % 32 / 255.0));
  }
}

TEST_F(CifarSourceTest, TellsTheClassesThatTheArchiveNames) {
  Write("batches.meta.txt", std::string("airplane\nautomobile\n\n"));
  EXPECT_THAT(Open()->facts().classes, ElementsAre("airplane", "automobile"));
  // Symptom: of a file with lines as Windows ends them classes were "airplane\\x0d", and one had no
  // other name.
  Write("batches.meta.txt", std::string("airplane\r\nautomobile\r\n\r\n"));
  EXPECT_THAT(Open()->facts().classes, ElementsAre("airplane", "automobile"));
  Write("batches.meta.txt", std::string(20000, 'x'));
  EXPECT_TRUE(Open()->facts().empty()) << "that is another file";
  std::filesystem::remove(PathOf("batches.meta.txt"));
  EXPECT_TRUE(Open()->facts().empty());
}

TEST_F(CifarSourceTest, ImagesAreOfTheNetworksSizeAndChannels) {
  SetImage({48, 40, 1});
  const Taken taken = TakeAll(*Open(), false, 0, 1);
  EXPECT_EQ(taken.images.size(), 7u * 48 * 40);
  EXPECT_NEAR(taken.images[0], 0.299 * 100 / 255, 0.01);
}

TEST_F(CifarSourceTest, PixelsAreNormalizedAsGivenOrAsMeasured) {
  SetData({.mean = {0.5, 0, 0}, .deviation = {0.25}});
  EXPECT_EQ(TakeAll(*Open(), false, 0, 1).images[0],
            static_cast<float>((100 / 255.0 - 0.5) / 0.25));
  for (const int64_t threads : {0, 3}) {
    SetData({.measure = true, .decode_threads = threads});
    const auto source = Open();
    // Red is 0 to 30, green and blue are 0 to 31 in each record.
    EXPECT_EQ(NoteOf(*source),
              "measured mean [0.0588235, 0.0607843, 0.0607843] and deviation [0.0350756, "
              "0.0362082, 0.0362082]");
    EXPECT_NEAR(TakeAll(*source, false, 0, 1).images[0], (100 / 255.0 - 15 / 255.0) / 0.0350756,
                1e-4);
    EXPECT_EQ(NoteOf(*Open({"labels"})), "") << "who reads no images measures none";
  }
}

// What a job that is resumed sees, and one with other threads.
TEST_F(CifarSourceTest, AugmentedImagesAreOfSeedEpochAndSampleAlone) {
  PictureFields fields{.padding = 4, .flip = true, .brightness = 0.2, .cutout = 8};
  SetData(fields);
  const auto source = Open();
  const Taken first = TakeAll(*source, true, 0, 9), rest = TakeAll(*source, true, 5, 9);
  EXPECT_NE(first, TakeAll(*source, true, 1, 10));
  for (const int64_t threads : {0, 1, 4}) {
    fields.decode_threads = threads;
    SetData(fields);
    EXPECT_EQ(TakeAll(*Open(), true, 5, 9), rest) << threads;
  }
  spec_.training.micro_batches = 7;
  EXPECT_EQ(TakeAll(*Open(), true, 5, 9), rest) << "the cut of the mini-batch changes nothing";
  // A picture is another one in the next epoch.
  const std::vector<int> places = [] {
    std::vector<int> all;
    for (uint64_t n = 0; n < 62; ++n) {
      all.push_back(static_cast<int>(PermuteIndex(42, n / 31, 31, n % 31)));
    }
    return all;
  }();
  const auto image = [&](size_t n) {
    const auto at = first.images.begin() + static_cast<int64_t>(n) * 3 * kCifarPixels;
    return std::vector<float>(at, at + 3 * kCifarPixels);
  };
  int same = 0;
  for (size_t n = 0; n < 31; ++n) {
    for (size_t m = 31; m < 62; ++m) same += places[n] == places[m] && image(n) == image(m) ? 1 : 0;
  }
  EXPECT_EQ(same, 0);
  spec_.seed = 43;
  EXPECT_NE(TakeAll(*Open(), true, 5, 9).images, rest.images);
}

TEST_F(CifarSourceTest, EvaluationIsNotAugmented) {
  const Taken plain = TakeAll(*Open(), false, 0, 2);
  SetData({.padding = 4, .flip = true, .brightness = 0.2, .cutout = 8});
  EXPECT_EQ(TakeAll(*Open(), false, 0, 2), plain);
}

TEST_F(CifarSourceTest, WithoutATestFileEveryTenthPictureIsHeldOut) {
  std::filesystem::remove(PathOf("test_batch.bin"));
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 28);
  EXPECT_THAT(Reds(TakeAll(*source, false, 0, 1)), ElementsAre(9, 19, 29));
  for (const int red : Reds(TakeAll(*source, true, 0, 8))) EXPECT_NE(red % 10, 9);
}

TEST_F(CifarSourceTest, StagesThatReadOnePartAgreeAboutTheDataSet) {
  SetData({.decode_threads = 0});  // a death test forks
  const auto first = Open({"images"}), last = Open({"labels"}), both = Open();
  EXPECT_EQ(first->manifest(), both->manifest());
  EXPECT_EQ(last->manifest(), both->manifest());
  EXPECT_EQ(both->manifest().bytes, 43 * 3073);
  const std::vector<std::string> labels = {"labels"};
  EXPECT_EQ(last->Train(2, MicroBatchId(1), labels)->arrays.at(0),
            both->Train(2, MicroBatchId(1), labels)->arrays.at(0));
  const std::vector<std::string> images = {"images"};
  EXPECT_DEATH(static_cast<void>(last->Train(2, MicroBatchId(1), images)), "not asked for");
  std::string other = CifarRecordsText(100, 12);
  other.back() = 'x';
  Write("test_batch.bin", other);
  EXPECT_NE(Open({"labels"})->manifest().sha256, both->manifest().sha256);
}

TEST_F(CifarSourceTest, ALabelThatIsNoClassIsNamedWithFileAndOffset) {
  std::string text = CifarRecordsText(20, 11);
  text[3073 * 4] = 12;
  Write("data_batch_2.bin", text);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.cifar.folder = \""), HasSubstr("data_batch_2.bin\""),
                               HasSubstr("label 12 of the record at offset 12292 is not below the "
                                         "classes of model.resnet, 10")));
}

TEST_F(CifarSourceTest, AFileThatIsCutOffIsNamedWithTheOffset) {
  for (const int size : {3073 * 12 - 1, 3073 * 11 + 1}) {
    Write("test_batch.bin", CifarRecordsText(100, 12).substr(0, size));
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("test_batch.bin\": "),
                                 HasSubstr("the record at offset 33803 has ")));
  }
  Write("test_batch.bin", std::string());
  EXPECT_THAT(Refusal(), HasSubstr("0 bytes: the record at offset 0 has 0 of 3073"));
}

TEST_F(CifarSourceTest, FoldersWithoutFilesAreNamed) {
  spec_.data = CifarData{.folder = PathOf("gone")};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.cifar.folder = \""), HasSubstr("No such file")));
  spec_.data = CifarData{.folder = "/"};
  EXPECT_THAT(Refusal(), HasSubstr("has no data_batch_*.bin and no train.bin; give the folder of "
                                   "CIFAR-10's binary version, or of CIFAR-100's"));
}

// Symptom: a batch or the test file in capitals, packed or half copied was left out, and nothing
// said so.
TEST_F(CifarSourceTest, FilesThatLookLikeRecordsAndAreNotReadAreTold) {
  Write("readme.html", std::string("-"));
  EXPECT_EQ(NoteOf(*Open()), "") << "what the archive has beside its records";
  for (const char* const name : {"data_batch_3.BIN", "data_batch_4.bin.gz", "test.bin"}) {
    Write(name, CifarRecordsText(0, 1));
  }
  EXPECT_THAT(NoteOf(*Open()),
              AllOf(HasSubstr("data.cifar.folder = \""), HasSubstr("\": left out: "),
                    HasSubstr(".bin, no name of CIFAR-10's files"), HasSubstr("1 .gz")));
}

TEST_F(CifarSourceTest, BadRecordsAreLeftOutWhereTheJobSaysSo) {
  std::string text = CifarRecordsText(20, 11);
  text[3073 * 4] = 12;
  text[3073 * 6] = 10;
  Write("data_batch_2.bin", text);
  Write("test_batch.bin", CifarRecordsText(100, 12).substr(0, 3073 * 11 + 5));
  spec_.data = CifarData{.folder = folder_.path(), .on_bad_record = OnBadRecord::kSkip};
  const auto source = Open(), labels = Open({"labels"});
  EXPECT_EQ(source->bad_records(), 3);
  EXPECT_EQ(source->manifest(), labels->manifest());
  EXPECT_EQ(source->manifest().train_samples, 29);
  EXPECT_EQ(source->manifest().evaluation_samples, 11);
  EXPECT_THAT(NoteOf(*source),
              AllOf(HasSubstr("3 bad records left out: data.cifar.folder = \""),
                    HasSubstr("label 12 of the record at offset 12292 is not below"),
                    HasSubstr("label 10 of the record at offset 18438 is not below"),
                    HasSubstr("the record at offset 33803 has 5 of 3073 bytes")));
  const Taken taken = TakeAll(*source, true, 0, 5);
  for (const int red : Reds(taken)) EXPECT_TRUE(red != 24 && red != 26) << red;
  for (size_t i = 0; i < taken.labels.size(); ++i) EXPECT_EQ(taken.labels[i], Reds(taken)[i] % 10);
}

// CIFAR-100: the coarse label and the fine one stand before the pixels.
TEST_F(CifarSourceTest, ReadsTheHundredClassesToo) {
  const auto hundred = [](int first, int count) {
    std::string text;
    for (int i = first; i < first + count; ++i) {
      text += static_cast<char>(i % 20);
      const std::string record = CifarRecordsText(i, 1);
      text += static_cast<char>(i % 100);
      text += record.substr(1);
    }
    return text;
  };
  Write("hundred/train.bin", hundred(0, 31));
  Write("hundred/test.bin", hundred(130, 7));
  Write("hundred/fine_label_names.txt", std::string("apple"));
  SetImage({32, 32, 3}, 100);
  spec_.data = CifarData{.folder = PathOf("hundred")};
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 31);
  const Taken taken = TakeAll(*source, false, 0, 1);
  EXPECT_THAT(Reds(taken), ElementsAre(130, 131, 132, 133, 134, 135, 136));
  EXPECT_THAT(taken.labels, ElementsAre(30, 31, 32, 33, 34, 35, 36));
  EXPECT_THAT(source->facts().classes, ElementsAre("apple"));
  SetImage({32, 32, 3}, 20);
  EXPECT_THAT(Refusal(), HasSubstr("train.bin\": label 20 of the record at offset 61480 is not "
                                   "below the classes of model.resnet, 20; give CIFAR-100's"));
  spec_.data = CifarData{.folder = PathOf("hundred"), .labels = CifarLabels::kCoarse};
  EXPECT_THAT(TakeAll(*Open(), false, 0, 1).labels, ElementsAre(10, 11, 12, 13, 14, 15, 16));
  Write("hundred/train.bin", hundred(0, 31).substr(0, 3074 * 30 + 3073));
  EXPECT_THAT(Refusal(), HasSubstr("the record at offset 92220 has 3073 of 3074 bytes; give the "
                                   "whole file of CIFAR-100's binary version"));
  Write("hundred/data_batch_1.bin", CifarRecordsText(0, 20));
  EXPECT_THAT(Refusal(), HasSubstr("has data_batch_*.bin and train.bin; give the folder of"));
  spec_.data = CifarData{.folder = folder_.path(), .labels = CifarLabels::kCoarse};
  EXPECT_THAT(Refusal(), HasSubstr("so it is CIFAR-10 with one label each; leave out "
                                   "data.cifar.labels = coarse"));
}

TEST_F(CifarSourceTest, FieldsThatDoNotGoTogetherAreRefused) {
  const auto refusal = [this](PictureFields fields) {
    SetData(std::move(fields));
    return Refusal();
  };
  EXPECT_EQ(refusal({.mean = {0.1, 0.2}}),
            "data.cifar.mean: [0.1, 0.2]; must be one number, or one for each of the 3 channels");
  EXPECT_EQ(refusal({.deviation = {0.1, 0, 1}}),
            "data.cifar.deviation: 0; must be above 0: pixels are divided by it");
  EXPECT_EQ(refusal({.mean = {0.1}, .measure = true}),
            "data.cifar.measure: true; must be false where mean or deviation is given");
  EXPECT_EQ(refusal({.shorter_side = 31}),
            "data.cifar.shorter_side: 31; must be at least 32, for the network reads [32, 32, 3], "
            "or 0");
  // Symptom: a job trained on black images, and succeeded.
  EXPECT_EQ(
      refusal({.cutout = 32}),
      "data.cifar.cutout: 32; must be below 32, or nothing may be left of an image: the network "
      "reads [32, 32, 3]");
  EXPECT_THAT(refusal({.padding = 1000}), HasSubstr("data.cifar.padding: 1000; must be below 32"));
  SetImage({32, 32, 1});
  EXPECT_EQ(refusal({.brightness = 0.5, .saturation = 0.4}),
            "data.cifar.saturation: 0.4; must be 0: grey images have no colours");
  SetImage({32, 32, 2});
  EXPECT_EQ(refusal({}),
            "data.cifar: gives images of 1 or 3 channels; the network reads [32, 32, 2]: give it 1 "
            "(grey) or 3 (colours)");
}

}  // namespace
}  // namespace stagecoach
