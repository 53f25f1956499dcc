#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "base/numbers/random.h"
#include "network/zoo/sequence.h"
#include "stage/data/sources/text_source_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Seen: a job on a gzip file trained to SUCCEEDED.
TEST_F(TextSourceTest, AFileThatIsNotTextIsRefusedUnlessTheJobAsksForBytes) {
  const std::string gzip = "\x1f\x8b\x08" + Counting(1009);
  spec_.data.attributes.Set("bytes", false);
  ExpectRefused(gzip, 10, 256, {"data.text.path = \"" + folder_.File("text"), "gzip", "unpack"});
  spec_.data.attributes.Set("bytes", true);
  EXPECT_EQ(Open(10)->manifest().sha256, Sha256Hex(gzip));
}

TEST_F(TextSourceTest, DescribesTheDataSet) {
  const std::string text = Counting(1009);
  Write(text);
  const auto source = Open(10);
  EXPECT_EQ(source->manifest().bytes, 1009);
  EXPECT_EQ(source->manifest().sha256, Sha256Hex(text));
  // 908 bytes train: 90 sequences read 901 of them. 101 are held out: exactly 10 sequences.
  EXPECT_EQ(source->manifest().train_samples, 90);
  EXPECT_EQ(source->manifest().evaluation_samples, 10);
  EXPECT_EQ(source->evaluation_batches(), 2);
  spec_.evaluation.batches = 1;
  EXPECT_EQ(Open(10)->evaluation_batches(), 1);
}

TEST_F(TextSourceTest, NeedsOneByteMoreThanTheContext) {
  for (const auto& [train_bytes, sequences] :
       std::map<int64_t, int64_t>{{11, 1}, {20, 1}, {21, 2}, {30, 2}, {31, 3}}) {
    // floor(0.9 * bytes) = train_bytes for the smallest such size.
    const size_t bytes = static_cast<size_t>((train_bytes * 10 + 8) / 9);
    spec_.evaluation.every_steps = 0;
    Write(Counting(bytes));
    EXPECT_EQ(Open(10)->manifest().train_samples, sequences) << bytes;
  }
}

TEST_F(TextSourceTest, TargetsAreInputsShiftedByOne) {
  const std::string text = Counting(2000);
  Write(text);
  const auto source = Open(16);
  const TokenBatch batch = Train(*source, 3, 1);
  EXPECT_EQ(batch.sequences, MicroBatchSize(7, 3, 1));
  ASSERT_EQ(batch.inputs.size(), static_cast<size_t>(batch.sequences * 16));
  ASSERT_EQ(batch.targets.size(), batch.inputs.size());
  for (int64_t s = 0; s < batch.sequences; ++s) {
    // Position within step 3: after micro-batch 0.
    const uint64_t n = 3 * 7 + MicroBatchSize(7, 3, 0) + s;
    const uint64_t all = source->manifest().train_samples;
    const uint64_t offset = PermuteIndex(42, n / all, all, n % all) * 16;
    for (int64_t t = 0; t < 16; ++t) {
      EXPECT_EQ(batch.inputs[s * 16 + t], static_cast<uint8_t>(text[offset + t]));
      EXPECT_EQ(batch.targets[s * 16 + t], static_cast<uint8_t>(text[offset + t + 1]));
    }
  }
}

// Bytes over 127 are tokens over 127, not negative ones.
TEST_F(TextSourceTest, ReadsBytesUnsigned) {
  Write(std::string(1000, '\xff'));
  EXPECT_EQ(Train(*Open(10), 0, 0).inputs[0], 255);
}

// Each sequence exactly once per epoch, across micro-batches and steps that straddle epochs, for
// sizes that divide evenly and sizes that do not.
TEST_F(TextSourceTest, VisitsEverySequenceOncePerEpoch) {
  struct Case {
    int64_t batch_size, micro_batches;
  };
  for (const Case& c : {Case{7, 3}, Case{4, 4}, Case{13, 5}, Case{1, 1}, Case{30, 4}}) {
    SCOPED_TRACE(absl::StrCat("N ", c.batch_size, " M ", c.micro_batches));
    spec_.training.batch_size = c.batch_size;
    spec_.training.micro_batches = c.micro_batches;
    // Sequence j begins with the byte j: 13 sequences of 10.
    std::string text(150, 'x');
    for (int j = 0; j < 15; ++j) text[10 * j] = static_cast<char>(j);
    Write(text);
    const auto source = Open(10);
    const int64_t all = source->manifest().train_samples;
    ASSERT_EQ(all, 13);
    std::vector<int32_t> order;
    for (uint64_t step = 0; order.size() < 4 * static_cast<size_t>(all); ++step) {
      for (int32_t i = 0; i < c.micro_batches; ++i) {
        const TokenBatch batch = Train(*source, step, i);
        for (int64_t s = 0; s < batch.sequences; ++s) order.push_back(batch.inputs[s * 10]);
      }
    }
    std::set<std::vector<int32_t>> orders;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      const std::vector<int32_t> visited(order.begin() + epoch * all,
                                         order.begin() + (epoch + 1) * all);
      EXPECT_EQ(std::set<int32_t>(visited.begin(), visited.end()).size(), 13u) << epoch;
      EXPECT_EQ(*std::max_element(visited.begin(), visited.end()), 12) << epoch;
      orders.insert(visited);
    }
    EXPECT_GT(orders.size(), 1u) << "epochs come in different orders";
  }
}

// The order of sequences belongs to the mini-batch: M only cuts it into pieces.
TEST_F(TextSourceTest, MicroBatchesCutTheSameMiniBatch) {
  Write(Counting(3000));
  std::vector<int32_t> whole;
  for (const int64_t micro_batches : {1, 2, 3, 7}) {
    spec_.training.micro_batches = micro_batches;
    const auto source = Open(10);
    std::vector<int32_t> joined;
    for (int32_t i = 0; i < micro_batches; ++i) {
      const TokenBatch batch = Train(*source, 11, i);
      joined.insert(joined.end(), batch.inputs.begin(), batch.inputs.end());
    }
    if (whole.empty()) whole = joined;
    EXPECT_EQ(joined, whole) << micro_batches;
  }
}

// What a resumed stage asks first is what an undisturbed one asked at that step.
TEST_F(TextSourceTest, IsAPureFunctionOfTheStep) {
  Write(Counting(3000));
  const auto running = Open(10);
  for (uint64_t step = 0; step < 20; ++step) Train(*running, step, 0);
  const auto resumed = Open(10);
  EXPECT_EQ(Train(*resumed, 20, 2).inputs, Train(*running, 20, 2).inputs);
  spec_.seed = 43;
  EXPECT_NE(Train(*Open(10), 20, 2).inputs, Train(*running, 20, 2).inputs);
}

TEST_F(TextSourceTest, EvaluatesTheHeldOutPartInOrder) {
  const std::string text = Counting(1009);
  Write(text);
  const auto source = Open(10);
  // Ten sequences: a full mini-batch of 7 as 3 + 2 + 2, then 3 as 3 + 0 + 0.
  int64_t next = 0;
  for (const auto& [batch, micro_batch, sequences] :
       std::vector<std::tuple<uint64_t, int32_t, int64_t>>{
           {0, 0, 3}, {0, 1, 2}, {0, 2, 2}, {1, 0, 3}, {1, 1, 0}, {1, 2, 0}}) {
    const TokenBatch tokens = Evaluate(*source, batch, micro_batch);
    ASSERT_EQ(tokens.sequences, sequences) << batch << " " << micro_batch;
    ASSERT_EQ(tokens.inputs.size(), static_cast<size_t>(sequences * 10));
    ASSERT_EQ(tokens.targets.size(), tokens.inputs.size());
    for (size_t t = 0; t < tokens.inputs.size(); ++t) {
      const size_t offset = 908 + static_cast<size_t>(next) * 10 + t;
      EXPECT_EQ(tokens.inputs[t], static_cast<uint8_t>(text[offset]));
      EXPECT_EQ(tokens.targets[t], static_cast<uint8_t>(text[offset + 1]));
    }
    next += sequences;
  }
  EXPECT_EQ(next, 10);
}

TEST_F(TextSourceTest, NamesAMissingFile) {
  const absl::Status status = TryOpen(10, 256).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("data.text.path"), HasSubstr("/text")));
}

TEST_F(TextSourceTest, RefusesWhatIsNoFile) {
  spec_.data = TextData{.path = folder_.path()};
  EXPECT_TRUE(absl::IsInvalidArgument(TryOpen(10, 256).status()));
  const std::string pipe = folder_.File("pipe");
  spec_.data = TextData{.path = pipe};
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(TryOpen(10, 256).status()));
}

TEST_F(TextSourceTest, RefusesTextsThatAreEmptyOrTooShort) {
  ExpectRefused("", 10, 256, {"data.text.path", "empty"});
  ExpectRefused(std::string(12, 'a'), 10, 256, {"data.text.path", "of 12 bytes", "context"});
  ExpectRefused(std::string(60, 'a'), 10, 256, {"held out", "evaluation.every_steps"});
  spec_.evaluation.every_steps = 0;
  EXPECT_EQ(Open(10)->evaluation_batches(), 0);
}

TEST_F(TextSourceTest, RefusesATokenOutsideTheVocabulary) {
  std::string text(1000, 'a');
  text[17] = '\x80';
  text[500] = '\xc8';
  ExpectRefused(text, 10, 128,
                {"data.text.path", "the byte at offset 17 is not below",
                 "model.gpt.vocabulary = 128", "at least 201"});
  ExpectRefused(text, 10, 200, {"the byte at offset 500 "});
  EXPECT_TRUE(TryOpen(10, 201).ok());
  spec_.network = SequenceSpec{.vocabulary = 128};
  ExpectRefused(text, 10, 128, {"model.sequence.vocabulary"});
}

TEST_F(TextSourceTest, ATestFileIsHeldOutAndAllOfTheTextTrains) {
  Write(Counting(1009));
  const std::string test(105, 'q');
  const std::string digest = Open(10)->manifest().sha256;
  spec_.data.attributes.Set("test", folder_.Write("test", test));
  const auto source = Open(10);
  EXPECT_EQ(source->manifest().bytes, 1009 + 105);
  EXPECT_NE(source->manifest().sha256, digest);
  EXPECT_EQ(source->manifest().train_samples, 100);
  EXPECT_EQ(source->manifest().evaluation_samples, 10);
  EXPECT_EQ(Evaluate(*source, 0, 0).inputs, std::vector<int32_t>(30, 'q'));
  folder_.Write("test", "short");
  EXPECT_THAT(std::string(TryOpen(10).status().message()),
              AllOf(HasSubstr("data.text.test"), HasSubstr("of 5 bytes")));
}

TEST_F(TextSourceTest, ReadsTinyShakespeare) {
  const std::string path =
      absl::StrCat(STAGECOACH_SOURCE_DIR, "/../shared/data/tinyshakespeare/input.txt");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  spec_.data = TextData{.path = path};
  const auto source = Open(256);
  EXPECT_GT(source->manifest().train_samples, 3000);
}

}  // namespace
}  // namespace stagecoach
