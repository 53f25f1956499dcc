// Ids and texts are those that SentencePiece's own library gives, for models that it trains.
#include "stage/tokens/tokenizer.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "base/testing/status_is.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/tokens/library/sentencepiece_library.h"
#include "stage/tokens/model_file_testing.h"

namespace stagecoach {
namespace {

using absl::StatusCode;
using std::string_literals::operator""s;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Words of several scripts, and what rules change: ligatures, wide and combined characters, other
// spaces, characters without width. Some of it is in no training text.
constexpr const char* kWords[] = {
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "unhappily",
    "running",
    "1984",
    "don't",
    "Straße",
    "naïve",
    "ﬁnally",
    "Ａｂｃ",
    "e\u0301",
    "русский",
    "текст",
    "東京",
    "都",
    "ひらがな",
    "한국어",
    "שלום",
    "🙂",
    "👩‍👩‍👧",
    "½",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\ufeff",
    "\t",
    "\u2581",
    "<2de>",
    "<s>",
    "<0x41>",
    "<unk>",
    "</s>",
    " ",
    "  ",
    ".",
    ",",
    "∑",
    "\ufffd",
    "\x01",
    "Ⅳ",
    "ﷺ",
    "a",
    "b",
    "\u1e9b\u0323",
    "ㄱ",
};

class Words {
 public:
  explicit Words(uint64_t seed) : stream_{.seed = seed} {}
  std::string Line(size_t usual) {
    std::string line;
    const uint32_t words = Next() % 24;
    for (uint32_t i = 0; i < words; ++i) {
      if (Next() % 5 != 0) line += ' ';
      line += kWords[Next() % (Next() % 4 == 0 ? std::size(kWords) : usual)];
    }
    return line;
  }
  uint32_t Next() { return RandomBits(stream_, next_++); }

 private:
  const RandomStream stream_;
  uint64_t next_ = 0;
};

using TrainerOptions = std::unordered_map<std::string, std::string>;

std::string Train(TrainerOptions options) {
  options.insert({{"vocab_size", options.contains("byte_fallback") ? "420" : "160"},
                  {"hard_vocab_limit", "false"},
                  {"num_threads", "1"},
                  {"minloglevel", "2"},
                  {"pad_id", "0"},
                  {"unk_id", "1"},
                  {"bos_id", "2"},
                  {"eos_id", "3"}});
  Words words(1);
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) lines.push_back(words.Line(20));
  size_t next = 0;
  const auto next_line = [&](std::string* line) {
    if (next == lines.size()) return false;
    *line = lines[next++];
    return true;
  };
  std::string model;
  const std::string error = TrainByLibrary(options, next_line, &model);
  CHECK(error.empty()) << error;
  return model;
}

struct Variant {
  const char* name;
  TrainerOptions options;
};

std::unique_ptr<const Tokenizer> Made(const std::string& bytes) {
  auto tokenizer = Tokenizer::Parse(bytes);
  CHECK(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

class TokenizerLikeSentencePiece : public testing::TestWithParam<Variant> {
 protected:
  TokenizerLikeSentencePiece() { CHECK(theirs_.ok()); }
  const std::string model_ = Train(GetParam().options);
  const std::unique_ptr<const Tokenizer> ours_ = Made(model_);
  const LibraryTokenizer theirs_{model_};
};

TEST_P(TokenizerLikeSentencePiece, KnowsTheSamePieces) {
  ASSERT_EQ(ours_->ids(), theirs_.ids());
  for (int32_t id = 0; id < ours_->ids(); ++id) {
    EXPECT_EQ(ours_->piece(id).text, theirs_.Piece(id));
    EXPECT_EQ(ours_->piece(id).score, theirs_.Score(id));
  }
  EXPECT_EQ(ours_->unknown(), theirs_.unknown());
  EXPECT_EQ(ours_->begin(), theirs_.begin());
  EXPECT_EQ(ours_->end(), theirs_.end());
  EXPECT_EQ(ours_->pad(), theirs_.pad());
}

TEST_P(TokenizerLikeSentencePiece, EncodesEveryTextAlikeAndDecodesItsIdsAlike) {
  Words words(2);
  for (int i = 0; i < 1500; ++i) {
    const std::string line = words.Line(std::size(kWords));
    const std::vector<int> expected = theirs_.Encode(line);
    const auto ids = ours_->Encode(line);
    ASSERT_TRUE(ids.ok()) << ids.status() << ": " << line;
    ASSERT_EQ(*ids, expected) << line;
    const std::string text = theirs_.Decode(expected);
    EXPECT_EQ(*ours_->Decode(*ids), text) << line;
  }
}

TEST_P(TokenizerLikeSentencePiece, DecodesAnyIdsAlike) {
  Words words(3);
  for (int i = 0; i < 1000; ++i) {
    std::vector<int32_t> ids(words.Next() % 12);
    for (int32_t& id : ids) {
      const int32_t among = words.Next() % 3 == 0 ? std::min(ours_->ids(), 12) : ours_->ids();
      id = static_cast<int32_t>(words.Next() % static_cast<uint32_t>(among));
    }
    const std::string text = theirs_.Decode(ids);
    EXPECT_EQ(*ours_->Decode(ids), text) << testing::PrintToString(ids);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Variants, TokenizerLikeSentencePiece,
    testing::Values(
        Variant{"unigram", {}}, Variant{"unigram_bytes", {{"byte_fallback", "true"}}},
        Variant{"unigram_symbols",
                {{"user_defined_symbols", "<2de>,<2fr>,at,\u3000"}, {"byte_fallback", "true"}}},
        Variant{"unigram_identity", {{"normalization_rule_name", "identity"}}},
        Variant{"unigram_spaces_kept", {{"remove_extra_whitespaces", "false"}}},
        Variant{"unigram_suffix", {{"treat_whitespace_as_suffix", "true"}}},
        Variant{"unigram_no_prefix", {{"add_dummy_prefix", "false"}}},
        Variant{"unigram_bare",
                {{"add_dummy_prefix", "false"}, {"remove_extra_whitespaces", "false"}}},
        Variant{"unigram_folded", {{"normalization_rule_name", "nmt_nfkc_cf"}}},
        Variant{"bpe", {{"model_type", "bpe"}}},
        Variant{"bpe_bytes", {{"model_type", "bpe"}, {"byte_fallback", "true"}}},
        Variant{"bpe_symbols", {{"model_type", "bpe"}, {"user_defined_symbols", "<2de>,<2fr>,at"}}},
        Variant{"bpe_spaces_kept", {{"model_type", "bpe"}, {"remove_extra_whitespaces", "false"}}}),
    [](const testing::TestParamInfo<Variant>& info) { return std::string(info.param.name); });

// Unused pieces only help bpe to join others.
TEST(Tokenizer, UnusedPiecesComeOutAsTheirHalves) {
  const std::string model = ModelFileText(UsualPieces({{"a", -9},
                                                       {"b", -9},
                                                       {"c", -9},
                                                       {"ab", -1, PieceType::kUnused},
                                                       {"abc", -2, PieceType::kUnused},
                                                       {"abcc", -3}}),
                                          WireNumber(3, 2), WireNumber(3, 0));
  const auto tokenizer = Made(model);
  const LibraryTokenizer theirs(model);
  ASSERT_TRUE(theirs.ok());
  for (const char* text : {"ab", "abc", "abcc", "abab", "cab", "abcccab"}) {
    const std::vector<int> expected = theirs.Encode(text);
    EXPECT_EQ(*tokenizer->Encode(text), expected) << text;
  }
  EXPECT_THAT(*tokenizer->Encode("abc"), ElementsAre(4, 5, 6));
}

TEST(Tokenizer, WithByteFallbackEveryTextComesBack) {
  const auto tokenizer = Made(ModelFileText(BytePieces(), WireNumber(35, 1)));
  for (const std::string text : {"anytext", "東京🙂", "Straße"}) {
    const auto ids = tokenizer->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*tokenizer->Decode(*ids), "\u2581" + text);  // the mark is bytes here, as the rest
  }
}

TEST(Tokenizer, TextsThatAreNotUtf8AreRefused) {
  const auto tokenizer = Made(ModelFileText(LetterPieces()));
  for (const std::string& text :
       {"caf\xe9"s, "\xc0\x80"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s, "cut \xe6\x9d"s, "a\0b"s}) {
    EXPECT_THAT(tokenizer->Encode(text).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("not UTF-8")));
  }
  EXPECT_THAT(*tokenizer->Encode(""), ElementsAre());
}

// Loading does not follow every rule: the first text that needs a damaged one shows it.
TEST(Tokenizer, DamagedRulesAreToldApartFromFaultsOfTheText) {
  constexpr size_t kUnits = 128;
  std::vector<uint32_t> units(kUnits);
  units['a'] = 0x3ffu << 10 | 0x100u | 'a';  // a rule for "a" whose value lies outside
  std::string rules = "\0\2\0\0"s;           // 4 * kUnits
  for (const uint32_t unit : units) {
    for (int i = 0; i < 4; ++i) rules.push_back(static_cast<char>(unit >> (8 * i)));
  }
  rules.push_back('\0');  // the replacements
  const auto tokenizer = Made(ModelFileText(LetterPieces(), "", WireBytes(2, rules)));
  EXPECT_TRUE(tokenizer->Encode("bcd").ok());
  EXPECT_THAT(tokenizer->Encode("bad").status(),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(StartsWith("the tokenizer: its rules for characters are damaged"),
                             HasSubstr("give a model"))));
}

TEST(Tokenizer, IdsThatItDoesNotHaveAreRefused) {
  const auto tokenizer = Made(ModelFileText(LetterPieces()));
  for (const int32_t id : {-1, tokenizer->ids(), INT32_MAX, INT32_MIN}) {
    EXPECT_THAT(tokenizer->Decode(std::vector<int32_t>{4, id}).status(),
                StatusIs(StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("id ", id, " is not among the 99 ids"))));
  }
}

TEST(Tokenizer, FilesThatDifferHaveAnotherDigest) {
  const auto one = Made(ModelFileText(LetterPieces()));
  const auto other = Made(ModelFileText(LetterPieces(), WireNumber(3, 2)));
  EXPECT_EQ(one->digest().size(), 64u);
  EXPECT_NE(one->digest(), other->digest());
}

}  // namespace
}  // namespace stagecoach
