// Weights of data.idx: numbers of a file of their own, beside the images that they belong to.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/gzip_testing.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/sequence.h"
#include "plan/data/idx.h"
#include "plan/job/data_kinds.h"
#include "stage/data/open_source.h"
#include "stage/files/any_file_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string BigEndian(uint32_t number) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 0xff);
  return text;
}

// Images of one pixel, or labels.
std::string BytesFile(uint32_t count, bool images) {
  std::string text = std::string("\0\0\x08", 3) + static_cast<char>(images ? 3 : 1);
  text += BigEndian(count);
  if (images) text += BigEndian(1) + BigEndian(1);
  for (uint32_t i = 0; i < count; ++i) text += static_cast<char>(images ? i : i % 2);
  return text;
}

std::string WeightsFile(const std::vector<float>& weights) {
  std::string text = std::string("\0\0\x0d\x01", 4);
  text += BigEndian(static_cast<uint32_t>(weights.size()));
  for (const float weight : weights) text += BigEndian(std::bit_cast<uint32_t>(weight));
  return text;
}

// Of image i: i / 4.
std::vector<float> Quarters(int count, int first = 0) {
  std::vector<float> weights;
  for (int i = 0; i < count; ++i) weights.push_back(static_cast<float>(first + i) / 4);
  return weights;
}

const std::vector<std::string> kAll = {"images", "labels", "weights"};

class IdxWeightsTest : public testing::Test {
 protected:
  IdxWeightsTest() {
    spec_.seed = 42;
    spec_.network = SequenceSpec{
        .layers = {FlattenSpec{}, LinearSpec{.out = 2}}, .image = {1, 1, 1}, .classes = 2};
    spec_.training.batch_size = 7;
    spec_.training.micro_batches = 3;
    spec_.evaluation = {.every_steps = 1, .batches = 100};
    data_ = {.images = Path("i"),
             .labels = Path("l"),
             .test_images = Path("ti"),
             .test_labels = Path("tl"),
             .weights = Path("w"),
             .test_weights = Path("tw")};
    Write("i", BytesFile(30, true));
    Write("l", BytesFile(30, false));
    Write("ti", BytesFile(10, true));
    Write("tl", BytesFile(10, false));
    Write("w", WeightsFile(Quarters(30)));
    Write("tw", WeightsFile(Quarters(10, 100)));
  }

  std::string Path(const std::string& name) const { return folder_.File(name); }
  void Write(const std::string& name, const std::string& text) const { folder_.Write(name, text); }
  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpen(
      const std::vector<std::string>& reads = kAll) {
    spec_.data = data_;
    const absl::StatusOr<Network> network = ExpandJob(spec_);
    if (!network.ok()) return network.status();
    return OpenSource(spec_, *network, reads, AnyFile());
  }
  std::unique_ptr<BatchSource> Open(const std::vector<std::string>& reads = kAll) {
    auto source = TryOpen(reads);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  std::string Refusal(const std::vector<std::string>& reads = kAll) {
    return std::string(TryOpen(reads).status().message());
  }
  std::string RefusalOf(const std::string& weights) {
    Write("w", weights);
    return Refusal();
  }
  static std::vector<float> Numbers(const std::vector<std::byte>& array) {
    std::vector<float> numbers(array.size() / sizeof(float));
    std::memcpy(numbers.data(), array.data(), array.size());
    return numbers;
  }

  TemporaryFolder folder_;
  JobSpec spec_;
  IdxData data_;
};

TEST_F(IdxWeightsTest, ComeWithTheirImages) {
  const auto source = Open();
  ASSERT_NE(source, nullptr);
  for (int i = 0; i < 3; ++i) {
    const HostBatch batch = *source->Train(3, MicroBatchId(i), kAll);
    const std::vector<float> images = Numbers(batch.arrays.at(0));
    const std::vector<float> weights = Numbers(batch.arrays.at(2));
    ASSERT_EQ(weights.size(), images.size());
    for (size_t s = 0; s < images.size(); ++s) {
      EXPECT_EQ(weights[s], std::round(images[s] * 255) / 4) << "image " << images[s] * 255;
    }
  }
  EXPECT_THAT(Numbers(source->Evaluation(0, MicroBatchId(0), kAll)->arrays.at(2)),
              ElementsAre(25, 25.25, 25.5));
}

TEST_F(IdxWeightsTest, OfHeldOutImagesAreInTheSameFile) {
  data_ = {.images = Path("i"), .labels = Path("l"), .weights = Path("w")};
  const auto source = Open();
  ASSERT_NE(source, nullptr);
  EXPECT_THAT(Numbers(source->Evaluation(0, MicroBatchId(0), kAll)->arrays.at(2)),
              ElementsAre(27 / 4.0, 28 / 4.0, 29 / 4.0));
}

TEST_F(IdxWeightsTest, OfTestImagesAre1WhereNothingIsSaid) {
  data_.test_weights = "";
  const auto source = Open();
  ASSERT_NE(source, nullptr);
  EXPECT_THAT(Numbers(source->Evaluation(0, MicroBatchId(0), kAll)->arrays.at(2)),
              ElementsAre(1, 1, 1));
}

// A stage that reads no weights finds the same data set all the same; another file is another one.
TEST_F(IdxWeightsTest, BelongToTheDataSet) {
  const auto packed = Gzipped(WeightsFile(Quarters(30)));
  std::set<std::string> digests;
  for (int change = 0; change < 4; ++change) {
    if (change == 1) Write("w", WeightsFile(Quarters(30, 1)));
    if (change == 2) Write("tw", WeightsFile(Quarters(10)));
    if (change == 3) Write("w", packed);
    const auto all = Open(), images = Open({"images"});
    ASSERT_TRUE(all != nullptr && images != nullptr);
    EXPECT_EQ(all->manifest(), images->manifest());
    digests.insert(all->manifest().sha256);
  }
  EXPECT_EQ(digests.size(), 4u);
  data_.weights = data_.test_weights = "";
  digests.insert(Open({"images", "labels"})->manifest().sha256);
  EXPECT_EQ(digests.size(), 5u);
}

TEST_F(IdxWeightsTest, ThatAreNoWeightsAreNamedWithTheirSample) {
  const auto refused = [this](float weight) {
    std::vector<float> weights = Quarters(30);
    weights[17] = weight;
    return RefusalOf(WeightsFile(weights));
  };
  EXPECT_THAT(refused(-0.5), AllOf(HasSubstr("data.idx.weights = \""),
                                   HasSubstr("weight -0.5 of sample 17; give weights of 0 or 1e-09 "
                                             "to 1e+09 as float32, the highest byte first")));
  EXPECT_THAT(refused(NAN), HasSubstr("weight nan of sample 17"));
  EXPECT_THAT(refused(INFINITY), HasSubstr("weight inf of sample 17"));
  EXPECT_THAT(refused(1e-12f), HasSubstr("weight 1e-12 of sample 17"));
  EXPECT_THAT(refused(3e9f), HasSubstr("weight 3e+09 of sample 17"));
  // The lowest byte first: 1 is a denormal then.
  std::string turned = WeightsFile(std::vector<float>(30, 1.0f));
  for (size_t i = 8; i < turned.size(); i += 4) std::reverse(&turned[i], &turned[i] + 4);
  EXPECT_THAT(RefusalOf(turned), AllOf(HasSubstr("of sample 0"), HasSubstr("the highest byte")));
  Write("w", WeightsFile(Quarters(30)));
  Write("tw", WeightsFile({1, 1, 1, 1, -1, 1, 1, 1, 1, 1}));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.idx.test_weights = \""), HasSubstr("sample 4")));
  EXPECT_TRUE(TryOpen({"images"}).ok()) << "a stage that reads no weights";
}

TEST_F(IdxWeightsTest, OfWhichNoneCountsAreRefused) {
  const std::vector<float> none(30, 0.0f);
  EXPECT_THAT(RefusalOf(WeightsFile(none)),
              AllOf(HasSubstr("data.idx.weights = \""),
                    HasSubstr("the 30 images to train on all have weight 0; give those")));
  Write("w", WeightsFile(Quarters(30)));
  Write("tw", WeightsFile(std::vector<float>(10, 0.0f)));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.idx.test_weights = \""),
                               HasSubstr("the 10 images to evaluate with all have")));
  // An evaluation reads the first mini-batches alone.
  Write("tw", WeightsFile({0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_TRUE(TryOpen().ok());
  spec_.evaluation.batches = 1;
  EXPECT_THAT(Refusal(), HasSubstr("the 7 images to evaluate with all have"));
  spec_.evaluation.every_steps = 0;
  EXPECT_TRUE(TryOpen().ok());
  // Only what is held out counts.
  data_ = {.images = Path("i"), .labels = Path("l"), .weights = Path("w")};
  std::vector<float> last = none;
  last[29] = 1;
  EXPECT_THAT(RefusalOf(WeightsFile(last)), HasSubstr("the 27 images to train on all have"));
}

TEST_F(IdxWeightsTest, OfOtherImagesAreRefused) {
  EXPECT_THAT(RefusalOf(WeightsFile(Quarters(29))),
              AllOf(HasSubstr("data.idx.weights = \""), HasSubstr("29 weights for 30 images of "
                                                                  "data.idx.images = \"")));
  EXPECT_THAT(Refusal({"images"}), HasSubstr("29 weights for 30 images")) << "whoever reads";
}

TEST_F(IdxWeightsTest, AreRefusedByTheirHeader) {
  const std::string whole = WeightsFile(Quarters(30));
  EXPECT_THAT(RefusalOf(""),
              HasSubstr("an empty file, not an IDX file; give an IDX file of weights"));
  EXPECT_THAT(RefusalOf(BytesFile(30, false)),
              HasSubstr("holds numbers of type 08, not float32 (0d); give an IDX file of weights"));
  std::string doubles = whole;
  doubles[2] = 0x0e;
  EXPECT_THAT(RefusalOf(doubles), HasSubstr("holds numbers of type 0e, not float32 (0d)"));
  std::string table = whole;
  table[3] = 2;
  EXPECT_THAT(RefusalOf(table), HasSubstr("has 2 extents, and weights have 1 (how many)"));
  EXPECT_THAT(RefusalOf(whole.substr(0, 6)), HasSubstr("6 bytes, its header has 8"));
  EXPECT_THAT(RefusalOf(whole.substr(0, 127)), HasSubstr("127 bytes, its header [30] says 128"));
  EXPECT_THAT(RefusalOf(whole + "x"), HasSubstr("129 bytes, its header [30] says 128"));
  EXPECT_THAT(RefusalOf(Gzipped(whole + "x")), HasSubstr("129 bytes unpacked"));
  const std::string packed = Gzipped(whole);
  EXPECT_THAT(RefusalOf(packed.substr(0, packed.size() - 9)), HasSubstr("is cut off"));
  EXPECT_THAT(RefusalOf(WeightsFile({})), HasSubstr("extent 0 of its header is 0"));
  data_.weights = Path("gone");
  EXPECT_TRUE(absl::IsNotFound(TryOpen().status()));
}

TEST_F(IdxWeightsTest, GoWithWhatTheyAreOf) {
  data_.weights = "";
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("data.idx.test_weights: \""),
                               HasSubstr("goes with weights: give them, or leave it out")));
  data_ = {
      .images = Path("i"), .labels = Path("l"), .weights = Path("w"), .test_weights = Path("tw")};
  EXPECT_THAT(Refusal(), HasSubstr("goes with test_images"));
}

// A stage gets the network and the job: they have to agree.
TEST_F(IdxWeightsTest, ThatTheNetworkDoesNotReadAreRefused) {
  spec_.data = data_;
  Network reads = *ExpandJob(spec_);
  IdxData without = data_;
  without.weights = without.test_weights = "";
  spec_.data = without;
  const Network reads_none = *ExpandJob(spec_);
  EXPECT_EQ(ValidateData(without, reads).message(),
            "data.idx.weights: \"\"; the network reads weights: give the IDX file of them");
  EXPECT_EQ(ValidateData(data_, reads_none).message(),
            absl::StrCat("data.idx.weights: \"", Path("w"),
                         "\"; the network reads no weights: leave it out"));
  EXPECT_TRUE(ValidateData(without, reads_none).ok());
  EXPECT_TRUE(ValidateData(data_, reads).ok());
}

}  // namespace
}  // namespace stagecoach
