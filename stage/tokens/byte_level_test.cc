// A tokenizer.json made by hand; tests/oracle/tokenizers_ids.py compares with the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/errors/check.h"
#include "base/testing/temporary_folder.h"
#include "stage/tokens/token_text.h"
#include "stage/tokens/tokenizer.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<const Tokenizer> Made(const json& file, const std::string& config = "") {
  auto tokenizer = Tokenizer::Parse(file.dump(), config);
  CHECK(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<int32_t> Ids(const json& file, const std::string& text) {
  return Made(file)->Encode(text).value();
}

json Split(const std::string& pattern, const std::string& behavior, bool invert = false) {
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", behavior},
                      {"invert", invert}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
}

// The words of a text: every word that could be is one piece.
std::string WordsOf(const json& pre_tokenizer, const std::string& text) {
  json file = TokenizerJson();
  file["pre_tokenizer"] = pre_tokenizer;
  file["model"]["ignore_merges"] = true;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t end = begin + 2; end <= text.size(); ++end) {
      json& vocabulary = file["model"]["vocab"];
      const std::string piece = ByteCharacters(text.substr(begin, end - begin));
      if (!vocabulary.contains(piece)) vocabulary[piece] = vocabulary.size();
    }
  }
  const auto tokenizer = Made(file);
  std::string words;
  const std::vector<int32_t> ids = tokenizer->Encode(text).value();
  for (const int32_t id : ids) {
    words += (words.empty() ? "" : "|") + tokenizer->Decode(std::vector<int32_t>{id}).value();
  }
  return words;
}

TEST(ByteLevel, MergesJoinTheFirstOfTheListAndTheLeftmost) {
  const json file = TokenizerJson({{"a", "b"}, {"b", "c"}, {"ab", "ab"}, {"a", "bc"}});
  EXPECT_THAT(Ids(file, "abab"), ElementsAre(258));
  EXPECT_THAT(Ids(file, "ababab"), ElementsAre(258, 256));
  EXPECT_THAT(Ids(file, "abc"), ElementsAre(256, 'c')) << "a b goes before b c";
  EXPECT_THAT(Ids(file, "bcc"), ElementsAre(257, 'c'));
  EXPECT_THAT(Ids(file, "ab ab"), ElementsAre(256, ' ', 256)) << "never over words";
  EXPECT_THAT(Ids(file, ""), IsEmpty());
}

TEST(ByteLevel, MergesMayBePairs) {
  json file = TokenizerJson({{"a", "b"}, {" ", "ab"}});
  const json strings = file["model"]["merges"];
  file["model"]["merges"] = json::array({json::array({"a", "b"}), json::array({"\u0120", "ab"})});
  EXPECT_THAT(Ids(file, "ab ab"), ElementsAre(256, 257));
  file["model"]["merges"] = strings;
  file["model"]["merges"].insert(file["model"]["merges"].begin(), "#version: 0.2");
  EXPECT_THAT(Ids(file, "ab ab"), ElementsAre(256, 257));
}

TEST(ByteLevel, AWordThatIsAPieceGoesBeforeMergesIfTheFileSaysSo) {
  json file = TokenizerJson({{"a", "b"}});
  file["model"]["vocab"]["abc"] = 257;
  EXPECT_THAT(Ids(file, "abc"), ElementsAre(256, 'c'));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(Ids(file, "abc"), ElementsAre(257));
}

TEST(ByteLevel, EveryByteComesBack) {
  const auto tokenizer = Made(TokenizerJson());
  const std::string text = "caf\u00e9 \u6771\u4eac \U0001f469\u200d\U0001f467\r\n\x7f";
  const std::vector<int32_t> ids = tokenizer->Encode(text).value();
  EXPECT_EQ(ids.size(), text.size());
  EXPECT_EQ(*tokenizer->Decode(ids), text);
  // Of a character that is cut its bytes are one replacement, others one each.
  EXPECT_EQ(*tokenizer->Decode(std::vector<int32_t>{0xe6, 0x9d, 'a', 0xff, 0xb1}),
            "\ufffda\ufffd\ufffd");
  EXPECT_FALSE(tokenizer->Decode(std::vector<int32_t>{256}).ok());
  EXPECT_FALSE(tokenizer->Decode(std::vector<int32_t>{-1}).ok());
  EXPECT_FALSE(tokenizer->Encode("caf\xe9").ok());
}

TEST(ByteLevel, WordsAreThoseOfGpt2sPattern) {
  const json bytes = TokenizerJson()["pre_tokenizer"];
  EXPECT_EQ(WordsOf(bytes, "I'll  go 12\n\n x!"), "I|'ll| | go| 12|\n\n| x|!");
  json spaced = bytes;
  spaced["add_prefix_space"] = true;
  EXPECT_EQ(Ids(
                [&] {
                  json file = TokenizerJson();
                  file["pre_tokenizer"] = spaced;
                  return file;
                }(),
                "a"),
            (std::vector<int32_t>{' ', 'a'}));
}

TEST(ByteLevel, ASplitTreatsMatchesAsItSays) {
  EXPECT_EQ(WordsOf(Split("-", "Isolated"), "a--b-"), "a|-|-|b|-");
  EXPECT_EQ(WordsOf(Split("-", "Removed"), "a--b-"), "a|b");
  EXPECT_EQ(WordsOf(Split("-", "MergedWithPrevious"), "a--b-"), "a-|-|b-");
  EXPECT_EQ(WordsOf(Split("-", "MergedWithNext"), "a--b-"), "a|-|-b|-");
  EXPECT_EQ(WordsOf(Split("-", "Contiguous"), "a--b-"), "a|--|b|-");
  EXPECT_EQ(WordsOf(Split("-", "Removed", true), "a--b-"), "-|-|-");
  EXPECT_EQ(WordsOf(Split("x?", "Isolated"), "axb"), "a|x|b") << "empty matches cut";
}

TEST(ByteLevel, PatternsMeanWhatTheyMeanToOniguruma) {
  EXPECT_EQ(WordsOf(Split("^a", "Isolated"), "ab\nab"), "a|b\n|a|b") << "lines";
  EXPECT_EQ(WordsOf(Split("b$", "Isolated"), "ab\nab"), "a|b|\na|b");
  EXPECT_EQ(WordsOf(Split(".+", "Isolated"), "a\r\nb"), "a\r|\n|b");
  EXPECT_EQ(WordsOf(Split("a{,2}b", "Isolated"), "xaaab"), "xa|aab");
  EXPECT_EQ(WordsOf(Split("[a-c&&[^b]]", "Isolated"), "abc"), "a|b|c");
  EXPECT_EQ(WordsOf(Split("\\v", "Isolated"), "a\v\nb"), "a|\v|\nb");
  EXPECT_EQ(WordsOf(Split("(?i:'S)", "Isolated"), "x's'\u017f"), "x|'s|'\u017f");
  EXPECT_EQ(WordsOf(Split("\\p{^L}+", "Isolated"), "ab12c"), "ab|12|c");
  EXPECT_EQ(WordsOf(Split("\\w", "Removed"), "-\u00bd-"), "-|-") << "a word outside of a class";
  EXPECT_EQ(WordsOf(Split("[\\w]", "Removed"), "-\u00bd-"), "-\u00bd-");
  // New in Unicode 16.
  EXPECT_EQ(WordsOf(Split("\\p{Lu}", "Isolated"), "\u1c89."), "\u1c89|.");
}

TEST(ByteLevel, DigitsStandByThemselvesOrInARow) {
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto digits = [&bytes](bool individual) -> json {
    return {{"type", "Sequence"},
            {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", individual}}, bytes}}};
  };
  EXPECT_EQ(WordsOf(digits(true), "a12b\u0663"), "a|1|2|b|\u0663");
  EXPECT_EQ(WordsOf(digits(false), "a12b\u0663"), "a|12|b|\u0663");
}

TEST(ByteLevel, NormalFormsAreOfUnicode9) {
  json file = TokenizerJson();
  file["normalizer"] = {{"type", "NFC"}};
  const auto tokenizer = Made(file);
  EXPECT_EQ(tokenizer->normalizer_name(), "NFC");
  const auto normalized = [](const Tokenizer& with, const std::string& text) {
    return with.Decode(with.Encode(text).value()).value();
  };
  EXPECT_EQ(normalized(*tokenizer, "e\u0301"), "\u00e9");
  // U+1DF9 is of Unicode 10; since then it goes in front of U+0301.
  EXPECT_EQ(normalized(*tokenizer, "q\u0301\u1df9"), "q\u0301\u1df9");
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {{{"type", "NFKD"}}, {{"type", "NFC"}}}}};
  EXPECT_EQ(normalized(*Made(file), "\ufb01e\u0301"), "fi\u00e9");
}

TEST(ByteLevel, AddedTokensAreFoundBeforeAllElse) {
  json file = TokenizerJson({{"a", "b"}});
  file["added_tokens"] = {AddedTokenJson(257, "<s>"), AddedTokenJson(258, "<s>x"),
                          AddedTokenJson(259, "ab", false)};
  EXPECT_FALSE(Tokenizer::Parse(file.dump()).ok()) << "ab has id 256";
  file["added_tokens"][2] = AddedTokenJson(259, "bc", false);
  EXPECT_THAT(Ids(file, "a<s>x<s> abc"), ElementsAre('a', 258, 257, ' ', 'a', 259));
  const auto tokenizer = Made(file);
  EXPECT_EQ(tokenizer->ids(), 260);
  EXPECT_EQ(tokenizer->piece(257).type, PieceType::kControl);
  EXPECT_EQ(tokenizer->piece(259).type, PieceType::kUserDefined);
  EXPECT_EQ(*tokenizer->Decode(std::vector<int32_t>{257, 'a'}), "<s>a");
}

TEST(ByteLevel, AddedTokensTakeSpacesAndStandAloneAsTheySay) {
  json file = TokenizerJson();
  file["added_tokens"] = {AddedTokenJson(256, "<l>"), AddedTokenJson(257, "<r>"),
                          AddedTokenJson(258, "wx", false), AddedTokenJson(259, "\u1ef3", false)};
  file["added_tokens"][0]["lstrip"] = true;
  file["added_tokens"][1]["rstrip"] = true;
  file["added_tokens"][2]["single_word"] = true;
  EXPECT_THAT(Ids(file, "a \u3000<l> b<r>  c"), ElementsAre('a', 256, ' ', 'b', 257, 'c'));
  EXPECT_THAT(Ids(file, "wx wxwx wx"), ElementsAre(258, ' ', 'w', 'x', 'w', 'x', ' ', 258));
  EXPECT_THAT(Ids(file, "\u1ef3y\u0300"), ElementsAre(259, 'y', 0xcc, 0x80));
  file["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(Ids(file, "\u1ef3y\u0300"), ElementsAre(259, 0xe1, 0xbb, 0xb3))
      << "looked for before";
  file["added_tokens"][3]["normalized"] = true;
  EXPECT_THAT(Ids(file, "\u1ef3y\u0300"), ElementsAre(259, 259)) << "looked for behind";
}

// Symptom: the text had U+0301, where the library has the piece in its normal form, and bytes of it.
TEST(ByteLevel, AddedTokensComeBackNormalized) {
  json file = TokenizerJson();
  file["normalizer"] = {{"type", "NFKC"}};
  file["added_tokens"] = {AddedTokenJson(256, "\ufb01x", false),
                          AddedTokenJson(257, "\ufb02", false),
                          AddedTokenJson(258, "e\u0301b", false)};
  file["added_tokens"][0]["normalized"] = true;
  file["added_tokens"][2]["normalized"] = true;
  const auto tokenizer = Made(file);
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{256, 257}).value(), "fix\ufb02");
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{258}).value(), "\ufffdb");
  EXPECT_EQ(tokenizer->piece(258).text, "e\u0301b");
}

TEST(ByteLevel, OtherCharactersAreUnknownOrBytes) {
  json file = TokenizerJson();
  file["model"]["vocab"].erase("z");
  file["model"]["vocab"]["<unk>"] = 'z';
  EXPECT_THAT(Ids(file, "azzb"), ElementsAre('a', 'b')) << "left out";
  file["model"]["unk_token"] = "<unk>";
  EXPECT_THAT(Ids(file, "azzb"), ElementsAre('a', 'z', 'z', 'b'));
  file["model"]["fuse_unk"] = true;
  EXPECT_THAT(Ids(file, "azzb"), ElementsAre('a', 'z', 'b'));
  EXPECT_EQ(Made(file)->unknown(), 'z');
  file["model"]["vocab"]["<0x7A>"] = 256;
  file["model"]["byte_fallback"] = true;
  EXPECT_THAT(Ids(file, "azzb"), ElementsAre('a', 256, 256, 'b'));
  file["model"]["byte_fallback"] = false;
  file["model"]["unk_token"] = "<gone>";
  EXPECT_TRUE(Made(file)->Encode("ab").ok());
  EXPECT_THAT(std::string(Made(file)->Encode("azb").status().message()),
              testing::AllOf(testing::HasSubstr("the tokenizer: "), testing::HasSubstr("<gone>")));
}

TEST(ByteLevel, BeginAndEndAreFoundInThreePlaces) {
  json file = TokenizerJson();
  file["added_tokens"] = {AddedTokenJson(256, "</s>"), AddedTokenJson(257, "<|b|>"),
                          AddedTokenJson(258, "<|e|>"), AddedTokenJson(259, "<pad>")};
  EXPECT_EQ(Made(file)->end(), 256) << "a usual name";
  EXPECT_EQ(Made(file)->begin(), -1);
  EXPECT_EQ(Made(file)->pad(), 259);
  const json template_json = {{"type", "TemplateProcessing"},
                              {"single",
                               {{{"SpecialToken", {{"id", "<|b|>"}}}},
                                {{"Sequence", {{"id", "A"}}}},
                                {{"SpecialToken", {{"id", "<|e|>"}}}}}}};
  file["post_processor"] = {{"type", "Sequence"},
                            {"processors", {{{"type", "ByteLevel"}}, template_json}}};
  EXPECT_EQ(Made(file)->begin(), 257);
  EXPECT_EQ(Made(file)->end(), 258);
  file["post_processor"] = {
      {"type", "RobertaProcessing"}, {"cls", {"<|e|>", 258}}, {"sep", {"<|b|>", 257}}};
  EXPECT_EQ(Made(file)->begin(), 258);
  EXPECT_EQ(Made(file)->end(), 257);
  const auto with = Made(file, R"({"bos_token": null, "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(with->begin(), -1);
  EXPECT_EQ(with->end(), 256);
  EXPECT_EQ(with->pad(), 259);
  EXPECT_NE(with->digest(), Made(file)->digest()) << "other tokens at the ends of lines";
}

// Symptom: the vocabulary of Qwen has "<s>" and "</s>" of HTML, which began and ended its texts.
TEST(ByteLevel, APieceOfTheVocabularyWithAUsualNameIsNoMark) {
  json file = TokenizerJson({{"<", "/"}, {"</", "s"}, {"</s", ">"}});
  EXPECT_EQ(Made(file)->end(), -1);
  file["added_tokens"] = nlohmann::json::array({AddedTokenJson(259, "<|endoftext|>")});
  EXPECT_EQ(Made(file)->end(), 259);
  EXPECT_EQ(Made(file)->begin(), 259);
  EXPECT_EQ(Made(file, R"({"eos_token": "</s>"})")->end(), 258) << "named, it is";
}

TEST(ByteLevel, TheConfigLiesBesideTheFile) {
  const TemporaryFolder folder;
  json file = TokenizerJson();
  file["added_tokens"] = {AddedTokenJson(256, "</s>"), AddedTokenJson(257, "<|e|>")};
  const std::string path = folder.Write("tokenizer.json", file.dump());
  EXPECT_EQ((*Tokenizer::Load(*PosixFileSystem(), path))->end(), 256);
  folder.Write("tokenizer_config.json", R"({"eos_token": "<|e|>"})");
  EXPECT_EQ((*Tokenizer::Load(*PosixFileSystem(), path))->end(), 257);
}

TEST(ByteLevel, StreamedTextHasWholeCharacters) {
  json file = TokenizerJson();
  file["added_tokens"] = nlohmann::json::array({AddedTokenJson(256, "</s>")});
  const auto tokenizer = Made(file);
  TokenText text(tokenizer.get(), tokenizer->ids());
  ASSERT_TRUE(text.Begin("--prompt", "x").ok());
  EXPECT_EQ(text.Add(0xe6), "");
  EXPECT_EQ(text.Add(0x9d), "");
  EXPECT_EQ(text.Add(0xb1), "\u6771");
  EXPECT_EQ(text.Add(' '), " ");
  EXPECT_EQ(text.Add('\n'), "\n");
  EXPECT_EQ(text.Add(' '), " ") << "a space in front belongs to the text";
  std::string told, whole;
  for (int i = 0; i < 300; ++i) {
    for (const int32_t id : {0xf0, 0x9f, 0x99, 0x82}) told += text.Add(id);
    whole += "\U0001f642";
  }
  EXPECT_EQ(told, whole);
  EXPECT_EQ(text.Add(0xf0), "");
  EXPECT_EQ(text.Finish(), "\ufffd");
}

// `generate` ended with a CHECK.
TEST(ByteLevel, APromptWithoutTokensIsRefused) {
  json file = TokenizerJson();
  file["pre_tokenizer"] = Split(" ", "Removed");
  const auto tokenizer = Made(file);
  EXPECT_EQ(TokenText(tokenizer.get(), 256).Begin("--prompt", " ").status().message(),
            "--prompt: the tokenizer makes no token of it");
}

// As Llama 3's: a text to continue begins with a token, and another ends it. Line ends are text.
TEST(ByteLevel, ATextBeginsAndEndsWithTheMarksOfItsFile) {
  json file = TokenizerJson({{"\n", "\n"}});
  file["added_tokens"] = {AddedTokenJson(257, "<|begin_of_text|>"), AddedTokenJson(258, "</s>")};
  const auto plain = Made(file);
  EXPECT_THAT(TokenText(plain.get(), 300).Begin("--prompt", "b\na\n\n").value(),
              ElementsAre('b', '\n', 'a', 256));
  EXPECT_EQ(EndOfText(plain.get()), 258);
  EXPECT_EQ(StopToken(plain.get(), 300, "--stop", "\n").value(), '\n');
  EXPECT_EQ(StopToken(plain.get(), 300, "--stop", "\n\n").value(), 256);
  EXPECT_EQ(StopToken(plain.get(), 300, "--stop", "</s>").value(), 258);
  EXPECT_TRUE(plain->Fits(259));
  EXPECT_TRUE(plain->Fits(300)) << "networks have rows that no piece has";
  EXPECT_FALSE(plain->Fits(258));
  TokenText text(plain.get(), 300);
  ASSERT_TRUE(text.Begin("--prompt", "a").ok());
  EXPECT_EQ(text.Add(280), "");
  EXPECT_EQ(text.Add('b'), "b");

  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single",
                             {{{"SpecialToken", {{"id", "<|begin_of_text|>"}, {"type_id", 0}}}},
                              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                            {"pair", json::array()},
                            {"special_tokens", json::object()}};
  const auto begins = Made(file);
  EXPECT_THAT(TokenText(begins.get(), 300).Begin("--prompt", "a").value(), ElementsAre(257, 'a'));

  // This class makes its own post-processor.
  const auto first = [&](const char* config) {
    return TokenText(Made(file, config).get(), 300).Begin("--prompt", "a").value().front();
  };
  EXPECT_EQ(first(R"({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": false,
                      "bos_token": "<|begin_of_text|>"})"),
            'a');
  file["post_processor"] = nullptr;
  EXPECT_EQ(first(R"({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": true,
                      "bos_token": "<|begin_of_text|>"})"),
            257);
  EXPECT_EQ(first(R"({"tokenizer_class": "GPT2TokenizerFast", "add_bos_token": true,
                      "bos_token": "<|begin_of_text|>"})"),
            'a');
}

}  // namespace
}  // namespace stagecoach
