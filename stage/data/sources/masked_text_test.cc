// A text whose tokens are masked: sequences, targets and epochs; what is refused.
#include <algorithm>
#include <set>

#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/bert.h"
#include "stage/data/sources/text_source_testing.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kContext = 10;
constexpr int32_t kPad = 0, kCls = 2, kSep = 3, kMask = 4;

class MaskedTextTest : public TextSourceTest {
 protected:
  MaskedTextTest() {
    spec_.data = TextData{.path = folder_.File("text"),
                          .tokenizer = folder_.Write("tokenizer.json", Tokenizer().dump()),
                          .masked = 0.5};
    std::string text;
    for (int i = 0; i < 100; ++i) text += i % 3 == 0 ? "ab c\n" : "c a b ac\n";
    Write(text);
  }
  static nlohmann::json Tokenizer() { return WordPieceJson({"a", "b", "c", "##a", "##b", "##c"}); }
  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpenMasked(int64_t context = kContext,
                                                             int64_t ignored = kPad) {
    NetworkSpec network(
        BertSpec{.layers = 1, .width = 4, .heads = 2, .context = context, .vocabulary = 11});
    network.objective.kind = CrossEntropySpec::kKind;
    network.objective.attributes = ToAttributes(CrossEntropySpec{.ignore_index = ignored});
    spec_.network = network;
    return OpenSource(spec_, *ExpandNetwork(network), kTextInputs, AnyFile());
  }
  std::unique_ptr<BatchSource> OpenMasked() {
    auto source = TryOpenMasked();
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  std::string MaskedRefusal(int64_t context = kContext, int64_t ignored = kPad) {
    return std::string(TryOpenMasked(context, ignored).status().message());
  }
};

TEST_F(MaskedTextTest, EachSequenceBeginsAndSomeOfItsTokensAreTargets) {
  const auto source = OpenMasked();
  std::set<int32_t> found;
  for (uint64_t step = 0; step < 5; ++step) {
    const TokenBatch batch = Train(*source, step, 0);
    ASSERT_EQ(batch.inputs.size(), static_cast<size_t>(3 * kContext));
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      const int32_t input = batch.inputs[i], target = batch.targets[i];
      if (i % kContext == 0) {
        EXPECT_EQ(input, kCls);
        EXPECT_EQ(target, kPad);
      }
      EXPECT_NE(target, kSep) << "a line's end is not masked";
      found.insert(target);
      if (input == kMask) EXPECT_NE(target, kPad);
      EXPECT_LT(input, 11);
    }
  }
  EXPECT_EQ(found, (std::set<int32_t>{kPad, 5, 6, 7, 9, 10})) << "ab is a ##b, ac is a ##c";
}

// As a folder whose tokenizer.json lists no added tokens.
TEST_F(MaskedTextTest, WhatTheConfigNamesIsNotMasked) {
  nlohmann::json tokenizer = Tokenizer();
  tokenizer["added_tokens"].clear();
  folder_.Write("tokenizer.json", tokenizer.dump());
  folder_.Write("tokenizer_config.json", R"({"cls_token": "[CLS]", "sep_token": "[SEP]",
                                             "pad_token": "[PAD]", "mask_token": "[MASK]"})");
  const auto source = OpenMasked();
  for (uint64_t step = 0; step < 5; ++step) {
    EXPECT_THAT(Train(*source, step, 0).targets, Not(Contains(kSep)));
  }
}

// With all targets in place of what was masked it is the text again, one sequence after the other.
TEST_F(MaskedTextTest, SequencesFollowEachOther) {
  std::vector<int32_t> text;
  const auto source = OpenMasked();
  const TokenBatch batch = Evaluate(*source, 0, 0);
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    if (i % kContext == 0) continue;
    text.push_back(batch.targets[i] == kPad ? batch.inputs[i] : batch.targets[i]);
  }
  // "ab c" and twice "c a b ac", each with its end.
  const std::vector<int32_t> lines = {5, 9, 7, kSep, 7, 5, 6, 5, 10, kSep, 7, 5, 6, 5, 10, kSep};
  std::vector<int32_t> twice = lines;
  twice.insert(twice.end(), lines.begin(), lines.end());
  const auto begin = std::search(twice.begin(), twice.end(), text.begin(), text.begin() + 8);
  ASSERT_NE(begin, twice.end());
  const auto first = static_cast<size_t>(begin - twice.begin());
  for (size_t i = 0; i < text.size(); ++i) EXPECT_EQ(text[i], lines[(first + i) % lines.size()]);
  EXPECT_EQ(Evaluate(*source, 0, 0).inputs, batch.inputs) << "masks of an evaluation stay";
}

TEST_F(MaskedTextTest, MasksDifferInEachEpoch) {
  spec_.training.batch_size = spec_.training.micro_batches = 1;
  const auto source = OpenMasked();
  const auto epoch = static_cast<uint64_t>(source->manifest().train_samples);
  std::set<std::vector<int32_t>> first, second;
  for (uint64_t step = 0; step < epoch; ++step) {
    first.insert(Train(*source, step, 0).inputs);
    second.insert(Train(*source, epoch + step, 0).inputs);
  }
  EXPECT_NE(first, second);
}

TEST_F(MaskedTextTest, SegmentsAreZero) {
  const auto source = OpenMasked();
  const HostBatch batch = *source->Train(0, MicroBatchId(0), std::vector<std::string>{"segments"});
  ASSERT_EQ(batch.arrays.at(0).size(), 3 * kContext * sizeof(int32_t));
  EXPECT_THAT(batch.arrays[0], Each(std::byte{0}));
}

// Without it a recovery could go on with another mask token, and nobody would know.
TEST_F(MaskedTextTest, TheMaskTokenIsInTheDigest) {
  const std::string before = OpenMasked()->manifest().sha256;
  folder_.Write("tokenizer_config.json", R"({"mask_token": "[UNK]"})");
  const std::string other = OpenMasked()->manifest().sha256;
  folder_.Write("tokenizer_config.json", R"({"mask_token": "[MASK]"})");
  EXPECT_NE(OpenMasked()->manifest().sha256, other);
  EXPECT_NE(before, other);
}

TEST_F(MaskedTextTest, WhatCannotBeMaskedIsRefused) {
  EXPECT_EQ(MaskedRefusal(kContext, 6),
            "model.objective.cross_entropy.ignore_index: 6; is the token \"b\" of the tokenizer, "
            "which would never be learnt: set it to the padding, 0");
  EXPECT_THAT(MaskedRefusal(1), HasSubstr("model.bert.context: 1; must be at least 2 with"));
  nlohmann::json tokenizer = Tokenizer();
  tokenizer["added_tokens"].clear();  // the pieces' names alone say nothing
  folder_.Write("tokenizer.json", tokenizer.dump());
  folder_.Write("tokenizer_config.json", R"({"sep_token": "[SEP]"})");
  EXPECT_THAT(MaskedRefusal(),
              HasSubstr("data.text.masked: 0.5; the tokenizer has no mask token: give a"));
}

}  // namespace
}  // namespace stagecoach
