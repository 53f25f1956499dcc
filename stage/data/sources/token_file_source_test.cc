// Files of tokens as llm.c and Megatron write them.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "plan/data/token_file.h"
#include "stage/data/sources/text_source_testing.h"
#include "stage/data/sources/token_file_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TokenFileSourceTest : public TextSourceTest {
 protected:
  TokenFileSourceTest() {
    spec_.network = GptSpec{.vocabulary = 100};
    spec_.training.batch_size = 4;
    spec_.training.micro_batches = 2;
    data_.files = {folder_.Write("train", LlmCFile<uint16_t>(Numbers(200)))};
  }
  static std::vector<int64_t> Numbers(int64_t count) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(i % 97);
    return ids;
  }
  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpenTokens(int64_t context,
                                                             SourceLook look = SourceLook::kTrain) {
    spec_.data = data_;
    Network network = NetworkOnText(context, 100);
    if (data_.packed) {
      network.inputs.push_back({"document_starts", context});
      network.wires.push_back(network.wires[0]);
    }
    return OpenSource(spec_, network, kTextInputs, AnyFile(), look);
  }
  std::unique_ptr<BatchSource> OpenTokens(int64_t context) {
    auto source = TryOpenTokens(context);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  // What is held out, as the test files have it.
  std::vector<int32_t> HeldOut(const std::vector<std::string>& test, int64_t context) {
    data_.test = test;
    const auto source = OpenTokens(context);
    if (source == nullptr) return {};
    std::vector<int32_t> ids;
    for (int64_t batch = 0; batch < source->evaluation_batches(); ++batch) {
      for (const int i : {0, 1}) {
        const TokenBatch some = Evaluate(*source, static_cast<uint64_t>(batch), i);
        ids.insert(ids.end(), some.inputs.begin(), some.inputs.end());
        if (!some.targets.empty()) last_target_ = some.targets.back();
      }
    }
    ids.push_back(last_target_);
    return ids;
  }
  std::string Pair(const std::string& name, const MegatronPair& pair) {
    folder_.Write(name + ".bin", pair.tokens);
    return folder_.Write(name + ".idx", pair.index);
  }
  void ExpectTokensRefused(const std::string& path, const std::vector<std::string>& parts) {
    data_.files = {path};
    const absl::Status status = TryOpenTokens(4).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("data.token_file.files[0] = \""));
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    }
  }

  TokenFileData data_;
  int32_t last_target_ = -1;
};

TEST_F(TokenFileSourceTest, TheContentTellsTheFormat) {
  for (const std::string& file : {LlmCFile<uint16_t>({7, 8, 9}), LlmCFile<uint32_t>({7, 8, 9})}) {
    EXPECT_THAT(HeldOut({folder_.Write("any.name", file)}, 2), ElementsAre(7, 8, 9));
  }
  for (const int type : {1, 4, 5, 8}) {
    EXPECT_THAT(HeldOut({Pair("pair", MegatronFiles({{7, 8}, {9}}, type))}, 2),
                ElementsAre(7, 8, 9));
  }
  // Files of both kinds follow each other.
  EXPECT_THAT(HeldOut({folder_.Write("a", LlmCFile<uint16_t>({1, 2})),
                       Pair("b", MegatronFiles({{3}, {4, 5}}, 8)),
                       folder_.Write("c", LlmCFile<uint32_t>({6}))},
                      5),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(TokenFileSourceTest, DocumentsThatLackTheEndGetIt) {
  data_.end = 99;
  const MegatronPair pair = MegatronFiles({{1, 2}, {3, 99}, {}, {4}}, 4);
  EXPECT_THAT(HeldOut({Pair("pair", pair)}, 6), ElementsAre(1, 2, 99, 3, 99, 4, 99));
  // Sequences may begin at any of them.
  for (const int64_t context : {1, 2, 3}) {
    EXPECT_THAT(HeldOut({Pair("pair", pair)}, context), ElementsAre(1, 2, 99, 3, 99, 4, 99));
  }
  const std::string digest = OpenTokens(6)->manifest().sha256;
  data_.end = 98;
  EXPECT_NE(OpenTokens(6)->manifest().sha256, digest);
}

TEST_F(TokenFileSourceTest, PackedDocumentsNeedAnEnd) {
  data_.packed = true;
  EXPECT_THAT(TryOpenTokens(4).status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("data.token_file.packed: true")));
  data_.end = 100;
  EXPECT_THAT(TryOpenTokens(4).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("data.token_file.end: 100"), HasSubstr("vocabulary, 100"),
                             HasSubstr("or a larger vocabulary"))));
  data_.end = 2;
  const auto source = OpenTokens(6);
  const std::vector<std::string> names = {"tokens", "document_starts"};
  const HostBatch batch = *source->Train(0, MicroBatchId(0), names);
  for (int64_t i = 0; i < batch.samples * 6; ++i) {
    int32_t token = 0, start = 0;
    std::memcpy(&token, batch.arrays[0].data() + i * 4, 4);
    std::memcpy(&start, batch.arrays[1].data() + i * 4, 4);
    // Numbers count up, so 3 alone is behind an end.
    if (token == 3 && i % 6 > 0) {
      EXPECT_EQ(start, i % 6);
    }
    EXPECT_LE(start, i % 6);
  }
}

TEST_F(TokenFileSourceTest, AnIdBeyondTheVocabularyIsNamed) {
  std::vector<int64_t> ids = Numbers(200);
  ids[123] = 100;
  ExpectTokensRefused(folder_.Write("bad", LlmCFile<uint16_t>(ids)),
                      {"bad\": token 123 is 100, and model.gpt.vocabulary = 100"});
  ids[123] = -5;
  ExpectTokensRefused(Pair("bad", MegatronFiles({ids}, 4)), {"bad.bin\": token 123 is -5"});
  ids[123] = int64_t{1} << 40;
  ExpectTokensRefused(Pair("bad", MegatronFiles({ids}, 5)), {"token 123 is 1099511627776"});
}

TEST_F(TokenFileSourceTest, FilesThatAreDamagedOrOfSomethingElseAreNamed) {
  const std::string good = LlmCFile<uint16_t>(Numbers(200));
  const auto changed = [](std::string bytes, size_t at, char to) {
    bytes[at] = to;
    return bytes;
  };
  ExpectTokensRefused(folder_.Write("f", ""), {"an empty file, not a file of tokens"});
  ExpectTokensRefused(folder_.Write("f", good.substr(0, 900)), {"has 900 bytes", "1024"});
  ExpectTokensRefused(folder_.Write("f", good.substr(0, good.size() - 2)),
                      {"has 1422 bytes", "200 tokens", "1424 bytes"});
  ExpectTokensRefused(folder_.Write("f", changed(good, 4, 9)), {"is version 9", "must be 1"});
  ExpectTokensRefused(folder_.Write("f", changed(good, 0, '\x8a')), {"questions with answers"});
  ExpectTokensRefused(folder_.Write("f", "PK\x03\x04 and more"), {"zip"});

  const MegatronPair pair = MegatronFiles({{1, 2}, {3}}, 8);
  ExpectTokensRefused(Pair("p", {pair.index.substr(0, 20), pair.tokens}), {"has 20 bytes"});
  ExpectTokensRefused(Pair("p", {pair.index + "x", pair.tokens}), {"2 sequences and 2 documents"});
  ExpectTokensRefused(Pair("p", {pair.index, pair.tokens + "x"}),
                      {"p.bin\": has 7 bytes", "3 tokens"});
  ExpectTokensRefused(Pair("p", {changed(pair.index, 9, 2), pair.tokens}), {"is version 2"});
  ExpectTokensRefused(Pair("p", {changed(pair.index, 17, 6), pair.tokens}), {"have type 6"});
  ExpectTokensRefused(Pair("p", {changed(pair.index, 34, 9), pair.tokens}), {"sequence 1 has 1"});
  ExpectTokensRefused(Pair("p", {changed(pair.index, 34 + 24 + 8, 3), pair.tokens}),
                      {"boundary 1 of its documents is sequence 3 of 2"});
  ExpectTokensRefused(folder_.Write("index", pair.index), {"must end with .idx"});
  data_.files = {folder_.Write("alone.idx", pair.index)};
  EXPECT_THAT(TryOpenTokens(4).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("alone.bin")));
}

TEST_F(TokenFileSourceTest, TooFewTokensAreNamed) {
  ExpectTokensRefused(folder_.Write("few", LlmCFile<uint16_t>({1, 2, 3})), {"of 3 tokens"});
}

TEST_F(TokenFileSourceTest, TheOrderIsThatOfTheSeed) {
  const auto source = OpenTokens(4), again = OpenTokens(4);
  EXPECT_EQ(Train(*again, 21, 1).inputs, Train(*source, 21, 1).inputs);
  EXPECT_EQ(source->manifest().train_samples, 44);
  EXPECT_EQ(source->manifest().evaluation_samples, 4);
  const auto survey = TryOpenTokens(4, SourceLook::kSurvey);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_THAT((*survey)->Found(), AllOf(HasSubstr("200 tokens"), HasSubstr("4 held out")));
}

}  // namespace
}  // namespace stagecoach
