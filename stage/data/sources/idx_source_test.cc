// data.idx on files that the tests make, and on Fashion-MNIST where its package is installed.

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/gzip_testing.h"
#include "base/numbers/random.h"
#include "base/threads/progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/idx.h"
#include "stage/data/picture_source_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kHeight = 2, kWidth = 3, kPixels = kHeight * kWidth;

// An IDX file of unsigned bytes.
std::string IdxText(const std::vector<uint32_t>& extents, const std::string& content) {
  std::string text("\0\0\x08", 3);
  text += static_cast<char>(extents.size());
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(extent >> shift & 0xff);
  }
  return text + content;
}

// Image i has the pixels i, i + 1, ...; so the first one tells which it is.
std::string ImagesText(uint32_t count, int first = 0) {
  std::string content;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    for (int pixel = 0; pixel < kPixels; ++pixel) content += static_cast<char>(first + i + pixel);
  }
  return IdxText({count, kHeight, kWidth}, content);
}

std::string LabelsText(uint32_t count) {
  std::string content;
  for (uint32_t i = 0; i < count; ++i) content += static_cast<char>(i % 10);
  return IdxText({count}, content);
}

const std::vector<std::string> kBoth = {"images", "labels"};

class IdxSourceTest : public PictureSourceTest {
 protected:
  IdxSourceTest() {
    SetImage({kHeight, kWidth, 1});
    SetData({.images = "i", .labels = "l", .test_images = "ti", .test_labels = "tl"});
    Write("i", ImagesText(30));
    Write("l", LabelsText(30));
    Write("ti", ImagesText(10, 100));
    Write("tl", LabelsText(10));
  }

  void SetData(IdxData data) {
    for (std::string* name : {&data.images, &data.labels, &data.test_images, &data.test_labels}) {
      if (!name->empty()) *name = folder_.File(*name);
    }
    spec_.data = std::move(data);
  }
  // Which images a micro-batch has, by their first pixels, without mean and deviation.
  static std::vector<int> FirstPixels(const HostBatch& batch) {
    std::vector<int> first;
    if (batch.samples == 0) return first;
    const std::vector<float> numbers = ValuesOf<float>(batch.arrays.at(0));
    for (size_t i = 0; i < numbers.size(); i += kPixels) {
      first.push_back(static_cast<int>(numbers[i] * 255 + 0.5F));
    }
    return first;
  }
};

TEST_F(IdxSourceTest, EachFileLiesBeneathADataRoot) {
  const DataRoots roots({.roots = {folder_.path()}});
  EXPECT_TRUE(OpenSource(spec_, network_, kBoth, roots).ok());
  for (const char* field : {"images", "labels", "test_images", "test_labels"}) {
    JobSpec spec = spec_;
    spec.data.attributes.Set(field, std::string("/etc/shadow"));
    const absl::Status refused = OpenSource(spec, network_, kBoth, roots).status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr(absl::StrCat("data.idx.", field, " = \"/etc/shadow\": is not beneath ")));
  }
}

TEST_F(IdxSourceTest, ImagesComeInTheOrderOfTheSeedWithTheirLabels) {
  const auto source = Open();
  const HostBatch batch = *source->Train(3, MicroBatchId(1), kBoth);
  ASSERT_EQ(batch.samples, MicroBatchSize(7, 3, 1));
  const std::vector<int> images = FirstPixels(batch);
  const std::vector<int32_t> labels = ValuesOf<int32_t>(batch.arrays.at(1));
  ASSERT_EQ(labels.size(), images.size());
  for (size_t s = 0; s < images.size(); ++s) {
    const uint64_t n = 3 * 7 + static_cast<uint64_t>(MicroBatchSize(7, 3, 0)) + s;
    EXPECT_EQ(images[s], static_cast<int>(PermuteIndex(42, n / 30, 30, n % 30)));
    EXPECT_EQ(labels[s], images[s] % 10);
  }
  EXPECT_EQ(source->manifest().train_samples, 30);
  EXPECT_EQ(source->manifest().evaluation_samples, 10);
}

TEST_F(IdxSourceTest, EachSampleComesOnceAnEpoch) {
  const auto source = Open();
  std::vector<int> seen;
  for (uint64_t step = 0; seen.size() < 60; ++step) {
    for (int i = 0; i < 3; ++i) {
      const std::vector<int> images = FirstPixels(*source->Train(step, MicroBatchId(i), kBoth));
      seen.insert(seen.end(), images.begin(), images.end());
    }
  }
  const std::vector<int> first(seen.begin(), seen.begin() + 30);
  const std::vector<int> second(seen.begin() + 30, seen.begin() + 60);
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 30u);
  EXPECT_EQ(std::set<int>(second.begin(), second.end()).size(), 30u);
  EXPECT_NE(first, second);
}

TEST_F(IdxSourceTest, EvaluationGoesThroughTheTestFilesAndEndsShort) {
  const auto source = Open();
  ASSERT_EQ(source->evaluation_batches(), 2);
  EXPECT_THAT(FirstPixels(*source->Evaluation(0, MicroBatchId(0), kBoth)),
              ElementsAre(100, 101, 102));
  EXPECT_THAT(FirstPixels(*source->Evaluation(1, MicroBatchId(0), kBoth)),
              ElementsAre(107, 108, 109));
  EXPECT_EQ(source->Evaluation(1, MicroBatchId(1), kBoth)->samples, 0);
}

TEST_F(IdxSourceTest, WithoutTestFilesTheLastTenthIsHeldOut) {
  SetData({.images = "i", .labels = "l"});
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 27);
  EXPECT_EQ(source->manifest().evaluation_samples, 3);
  EXPECT_THAT(FirstPixels(*source->Evaluation(0, MicroBatchId(0), kBoth)), ElementsAre(27, 28, 29));
  for (uint64_t step = 0; step < 20; ++step) {
    for (const int image : FirstPixels(*source->Train(step, MicroBatchId(0), kBoth))) {
      EXPECT_LT(image, 27);
    }
  }
}

TEST_F(IdxSourceTest, PixelsAreNormalized) {
  SetData({.images = "i", .labels = "l", .mean = 0.25, .deviation = 0.5});
  const auto source = Open();
  const std::vector<float> numbers =
      ValuesOf<float>(source->Evaluation(0, MicroBatchId(0), kBoth)->arrays.at(0));
  EXPECT_EQ(numbers.at(1), static_cast<float>((28 / 255.0 - 0.25) / 0.5));
}

// What a job that is resumed sees, and one with other threads.
TEST_F(IdxSourceTest, AugmentedImagesAreOfSeedEpochAndSampleAlone) {
  const PictureFields drawn{.padding = 1, .flip = true, .brightness = 0.3, .decode_threads = 0};
  const IdxData files{.images = "i", .labels = "l", .test_images = "ti", .test_labels = "tl"};
  const auto open = [&](int64_t threads) {
    IdxData data = files;
    data.pictures = drawn;
    data.pictures.decode_threads = threads;
    SetData(data);
    return Open();
  };
  const auto plain = Open(), none = open(0), three = open(3);
  EXPECT_EQ(none->manifest(), plain->manifest());
  int changed = 0, later = 0;
  for (uint64_t step = 0; step < 9; ++step) {
    for (const int i : {0, 1, 2}) {
      const HostBatch one = *none->Train(step, MicroBatchId(i), kBoth);
      EXPECT_EQ(three->Train(step, MicroBatchId(i), kBoth)->arrays, one.arrays);
      const HostBatch before = *plain->Train(step, MicroBatchId(i), kBoth);
      EXPECT_EQ(one.arrays.at(1), before.arrays.at(1)) << "labels are what they were";
      changed += one.arrays.at(0) != before.arrays.at(0) ? 1 : 0;
      later += open(1)->Train(step, MicroBatchId(i), kBoth)->arrays == one.arrays ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 20);
  EXPECT_EQ(later, 27) << "a source that begins with this step";
  EXPECT_EQ(none->Evaluation(0, MicroBatchId(0), kBoth)->arrays,
            plain->Evaluation(0, MicroBatchId(0), kBoth)->arrays);
}

TEST_F(IdxSourceTest, AnImageIsShiftedMirroredAndCutAsAPictureIs) {
  IdxData data{.images = "i", .labels = "l", .test_images = "ti", .test_labels = "tl", .mean = 0.5};
  data.pictures.flip = true;
  SetData(data);
  const auto source = Open();
  std::set<bool> mirrored;
  for (uint64_t step = 0; step < 9; ++step) {
    const std::vector<float> numbers =
        ValuesOf<float>(source->Train(step, MicroBatchId(0), kBoth)->arrays.at(0));
    for (size_t i = 0; i < numbers.size(); i += kPixels) {
      const float left = numbers[i], right = numbers[i + kWidth - 1];
      EXPECT_FLOAT_EQ(std::abs(right - left), 2 / 255.0F);
      EXPECT_FLOAT_EQ(numbers[i + 1], (left + right) / 2);
      mirrored.insert(left > right);
    }
  }
  EXPECT_EQ(mirrored.size(), 2u);
  SetData({.images = "i", .labels = "l", .mean = 0.5, .pictures = {.cutout = 20}});
  const std::vector<float> cut =
      ValuesOf<float>(Open()->Train(0, MicroBatchId(0), kBoth)->arrays.at(0));
  EXPECT_THAT(cut, testing::Each(0.0F))
      << "a square larger than the image, of zeros and not of -mean";
}

TEST_F(IdxSourceTest, ColoursOfImagesThatHaveNoneAreNotChanged) {
  SetImage({1, 3, 2});
  Write("i", IdxText({30, 1, 3, 2}, ImagesText(30).substr(16)));
  SetData({.images = "i", .labels = "l", .pictures = {.flip = true, .hue = 0.2}});
  EXPECT_EQ(
      Refusal(),
      "data.idx.hue: 0.2; must be 0: images of 2 channels are neither grey (1) nor colours (3)");
  SetData({.images = "i", .labels = "l", .pictures = {.flip = true}});
  EXPECT_NE(Open(), nullptr);
  SetImage({1, 3, 1});
  SetData({.images = "i", .labels = "l", .pictures = {.contrast = 0.5, .hue = 0.2}});
  EXPECT_EQ(Refusal(), "data.idx.hue: 0.2; must be 0: grey images have no colours");
}

TEST_F(IdxSourceTest, AFourthExtentIsTheChannels) {
  SetImage({1, 2, 3});
  Write("i", IdxText({30, 1, 2, 3}, ImagesText(30).substr(16)));
  Write("ti", IdxText({10, 1, 2, 3}, ImagesText(10, 100).substr(16)));
  EXPECT_THAT(FirstPixels(*Open()->Evaluation(0, MicroBatchId(2), kBoth)), ElementsAre(105, 106));
}

TEST_F(IdxSourceTest, PackedFilesGiveTheSame) {
  const auto plain = Open();
  const HostBatch before = *plain->Train(5, MicroBatchId(0), kBoth);
  Write("i", Gzipped(ImagesText(30)));
  Write("tl", Gzipped(LabelsText(10)));
  const auto packed = Open();
  EXPECT_EQ(packed->Train(5, MicroBatchId(0), kBoth)->arrays, before.arrays);
  EXPECT_EQ(packed->evaluation_batches(), 2);
}

// gzip and Python's module read files of several members, and zeros that a tape or a block device
// left behind.
TEST_F(IdxSourceTest, MembersAndZerosBehindOneAreReadAsGzipDoes) {
  const std::string whole = ImagesText(30);
  const HostBatch before = *Open()->Train(5, MicroBatchId(0), kBoth);
  const std::string members =
      Gzipped(whole.substr(0, 77)) + Gzipped("") + Gzipped(whole.substr(77));
  for (const std::string& packed :
       {members, members + std::string(512, '\0'), Gzipped(whole) + std::string(512, '\0'),
        Gzipped(whole.substr(0, 20)) + std::string(9, '\0') + Gzipped(whole.substr(20)),
        // The IDX header is not in the first member, or not all of it is.
        Gzipped("") + std::string(3, '\0') + Gzipped(whole),
        Gzipped(whole.substr(0, 3)) + Gzipped(whole.substr(3))}) {
    Write("i", packed);
    const auto source = TryOpen(kBoth);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->Train(5, MicroBatchId(0), kBoth)->arrays, before.arrays);
  }
  Write("i", Gzipped(whole) + std::string(512, '\0') + "x");
  EXPECT_THAT(Refusal(), HasSubstr("something else behind it"));
}

// Symptom: such a file was "an empty file, not an IDX file".
TEST_F(IdxSourceTest, AGzipHeaderThatHidesTheContentIsNamed) {
  std::string packed = Gzipped(ImagesText(30)).substr(0, 9);
  EXPECT_EQ(packed[3], 0) << "no flags";
  packed[3] = 16;  // a comment
  Write("i", packed + std::string(kDataHeadBytes, 'c'));
  EXPECT_THAT(Refusal(), HasSubstr("bytes of gzip unpack to nothing"));
}

TEST_F(IdxSourceTest, AFileOfAnotherKindIsNamed) {
  const std::string tar = "t10k-images" + std::string(246, '\0') + "ustar" + std::string(250, '\0');
  Write("i", Gzipped(tar));
  EXPECT_THAT(Refusal(), HasSubstr("images = \"" + folder_.File("i") +
                                   "\": a tar archive, not an IDX file; unpack it first"));
  Write("i", std::string("version https://git-lfs.github.com/spec/v1\n"));
  EXPECT_THAT(Refusal(), HasSubstr("a Git LFS pointer, not an IDX file; fetch the file itself"));
}

// A stage that reads labels alone finds the same data set, and does not unpack the images.
TEST_F(IdxSourceTest, StagesThatReadOnePartAgreeAboutTheDataSet) {
  for (const bool packed : {false, true}) {
    if (packed) Write("i", Gzipped(ImagesText(30)));
    const auto first = Open({"images"}), last = Open({"labels"}), both = Open();
    EXPECT_EQ(first->manifest(), both->manifest());
    EXPECT_EQ(last->manifest(), both->manifest());
    const std::vector<std::string> labels = {"labels"};
    EXPECT_EQ(last->Train(2, MicroBatchId(1), labels)->arrays.at(0),
              both->Train(2, MicroBatchId(1), kBoth)->arrays.at(1));
    EXPECT_DEATH(last->Train(2, MicroBatchId(1), kBoth), "images were not asked for");
  }
}

TEST_F(IdxSourceTest, AnyFileThatChangesChangesTheDigest) {
  const std::string before = Open()->manifest().sha256;
  std::set<std::string> digests = {before};
  for (const char* name : {"i", "ti"}) {
    std::string images = ImagesText(name[0] == 'i' ? 30 : 10);
    images.back() = '\x77';
    Write(name, images);
    digests.insert(Open()->manifest().sha256);
  }
  for (const char* name : {"l", "tl"}) {
    std::string labels = LabelsText(name[0] == 'l' ? 30 : 10);
    labels.back() = 0;
    Write(name, labels);
    digests.insert(Open({"images"})->manifest().sha256);
  }
  EXPECT_EQ(digests.size(), 5u);
}

TEST_F(IdxSourceTest, ALabelThatIsNoClassIsNamedWithItsSample) {
  std::string labels = LabelsText(30);
  labels[8 + 17] = 12;
  labels[8 + 20] = 15;
  Write("l", labels);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.idx.labels = \""),
                               HasSubstr("label 12 of sample 17 is not below the classes of "
                                         "model.resnet, 10"),
                               HasSubstr("a network of at least 16 classes")));
  spec_.network.attributes.Set("classes", int64_t{10});
  EXPECT_THAT(Refusal(), HasSubstr("is not below model.resnet.classes = 10"));
  EXPECT_TRUE(TryOpen({"images"}).ok()) << "a stage that reads no labels";
}

TEST_F(IdxSourceTest, ImagesOfAnotherSizeThanTheNetworksAreRefused) {
  SetImage({28, 28, 1});
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.idx.images = \""),
                               HasSubstr("images [2, 3, 1] (height, width, channels)"),
                               HasSubstr("model.resnet reads images [28, 28, 1]: make it [2, 3")));
  spec_.network.attributes.Set("image", std::vector<int64_t>{28, 28, 1});
  EXPECT_THAT(Refusal(), HasSubstr("model.resnet.image = [28, 28, 1]: set it to [2, 3, 1] or "));
  SetImage({kHeight, kWidth, 1});
  Write("ti", IdxText({10, 3, 2}, std::string(60, 'x')));
  EXPECT_THAT(Refusal(), HasSubstr("data.idx.test_images = \""));
}

TEST_F(IdxSourceTest, LabelsThatAreNotTheImagesAreRefused) {
  Write("l", LabelsText(29));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.idx.labels = \""), HasSubstr("29 labels for 30")));
}

TEST_F(IdxSourceTest, FilesThatAreNotWhatTheyShouldBeAreRefusedByTheirHeader) {
  const auto refused = [this](const std::string& text) {
    Write("i", text);
    return Refusal();
  };
  EXPECT_THAT(refused(""), HasSubstr("an empty file, not an IDX file"));
  EXPECT_THAT(refused("a text"), HasSubstr("text, not an IDX file"));
  EXPECT_THAT(refused("\x81\x82\x83\x84"), HasSubstr("begins with \"81 82 83 84\", no IDX file"));
  EXPECT_THAT(refused("PK\x03\x04 and so on"),
              HasSubstr("a zip archive, not an IDX file; unpack it"));
  EXPECT_THAT(refused(LabelsText(30)), AllOf(HasSubstr("has 1 extent, and images have 3 or 4"),
                                             HasSubstr("give an IDX file of images")));
  std::string floats = ImagesText(30);
  floats[2] = 0x0d;
  EXPECT_THAT(refused(floats), HasSubstr("holds numbers of type 0d, not unsigned bytes (08)"));
  EXPECT_THAT(refused(ImagesText(30).substr(0, 9)), HasSubstr("9 bytes, its header has 16"));
  EXPECT_THAT(refused(IdxText({0, 2, 3}, "")), HasSubstr("extent 0 of its header is 0"));
  // Bounds stand before any room is made.
  EXPECT_THAT(refused(IdxText({30, 0xffffffff, 3}, "")),
              HasSubstr("extent 1 of its header is 4294967295; must be 1 to 1048576"));
  EXPECT_THAT(refused(IdxText({30, 1 << 20, 1 << 20}, "")),
              HasSubstr("images of 1099511627776 numbers; must be at most"));
  Write("i", ImagesText(30));
  Write("l", ImagesText(30));
  EXPECT_THAT(Refusal(), HasSubstr("has 3 extents, and labels have 1"));
}

TEST_F(IdxSourceTest, AFileOfAnotherSizeThanItsHeaderSaysIsRefusedWithBoth) {
  const std::string whole = ImagesText(30);
  const auto refused = [this](const std::string& text) {
    Write("i", text);
    return Refusal();
  };
  EXPECT_THAT(refused(whole + "x"), HasSubstr("197 bytes, its header [30, 2, 3] says 196"));
  EXPECT_THAT(refused(whole.substr(0, 195)), HasSubstr("195 bytes, its header"));
  EXPECT_THAT(refused(Gzipped(whole + "xy")),
              HasSubstr("198 bytes unpacked, its header [30, 2, 3] says 196"));
  EXPECT_THAT(refused(Gzipped(whole.substr(0, 190))), HasSubstr("190 bytes unpacked"));
  const std::string packed = Gzipped(whole);
  EXPECT_THAT(refused(packed.substr(0, packed.size() - 9)), HasSubstr("is cut off"));
  EXPECT_THAT(refused(packed + "xy"), HasSubstr("something else behind it"));
  EXPECT_THAT(refused(packed + packed), HasSubstr("bytes unpacked or more, its header [30, 2, 3]"));
  // The last four bytes are another member's size, or zeros.
  for (const std::string& behind : {Gzipped("x"), std::string(8, '\0')}) {
    EXPECT_THAT(refused(Gzipped(whole + std::string(1000, 'y')) + behind),
                HasSubstr("197 bytes unpacked or more, its header [30, 2, 3] says 196"));
  }
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // of its checksum
  EXPECT_THAT(refused(damaged), AllOf(HasSubstr("data.idx.images = \""), HasSubstr("damaged")));
  // A small file that says it is large takes no memory.
  EXPECT_THAT(refused(Gzipped(IdxText({2000000000, 2, 3}, "abc"))),
              AllOf(HasSubstr("bytes of gzip hold at most"), HasSubstr("says 12000000016")));
}

TEST_F(IdxSourceTest, MissingFilesAndHalvesAreNamed) {
  SetData({.images = "i", .labels = "gone"});
  EXPECT_TRUE(absl::IsNotFound(TryOpen(kBoth).status()));
  EXPECT_THAT(Refusal(), HasSubstr("data.idx.labels = \""));
  SetData({.images = "i", .labels = "l", .test_images = "ti"});
  EXPECT_EQ(Refusal(), "data.idx.test_labels: \"\"; must be given with test_images, or neither");
  SetData({.images = "i", .labels = "l", .test_labels = "tl"});
  EXPECT_THAT(Refusal(), HasSubstr("data.idx.test_images: \"\"; must be given"));
}

TEST_F(IdxSourceTest, AJobThatEvaluatesNeedsSomethingToHoldOut) {
  SetData({.images = "i", .labels = "l"});
  Write("i", ImagesText(1));
  Write("l", LabelsText(1));
  EXPECT_THAT(Refusal(), HasSubstr("1 images, none to train on"));
  spec_.evaluation.every_steps = 0;
  EXPECT_THAT(Refusal(), HasSubstr("none to train on"));
}

TEST_F(IdxSourceTest, ReadingTicks) {
  ProgressCounter counter;
  const ProgressScope scope(&counter);
  Open();
  EXPECT_GE(counter.count(), 4u) << "one a file at least";
}

TEST_F(IdxSourceTest, ReadsFashionMnist) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << folder << " is not here: Debian's package dataset-fashion-mnist";
  }
  spec_.data = IdxData{.images = folder + "train-images-idx3-ubyte.gz",
                       .labels = folder + "train-labels-idx1-ubyte.gz",
                       .test_images = folder + "t10k-images-idx3-ubyte.gz",
                       .test_labels = folder + "t10k-labels-idx1-ubyte.gz"};
  SetImage({28, 28, 1});
  spec_.training.batch_size = 1000;
  spec_.training.micro_batches = 1;
  const auto source = Open();
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->manifest().train_samples, 60000);
  EXPECT_EQ(source->manifest().evaluation_samples, 10000);
  EXPECT_EQ(source->evaluation_batches(), 10);
  // Ten classes, a tenth of the test images each.
  std::vector<int> count(10, 0);
  for (uint64_t batch = 0; batch < 10; ++batch) {
    for (const int32_t label :
         ValuesOf<int32_t>(source->Evaluation(batch, MicroBatchId(0), kBoth)->arrays.at(1))) {
      ++count.at(static_cast<size_t>(label));
    }
  }
  EXPECT_THAT(count, testing::Each(1000));
  const HostBatch batch = *source->Train(0, MicroBatchId(0), kBoth);
  double sum = 0;
  for (const float number : ValuesOf<float>(batch.arrays.at(0))) sum += number;
  EXPECT_NEAR(sum / (1000 * 784), 0.286, 0.02) << "the mean that its authors give";
}

}  // namespace
}  // namespace stagecoach
