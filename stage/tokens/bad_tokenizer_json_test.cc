// What a tokenizer.json may not say: each is refused with the field, its value and a remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "stage/tokens/tokenizer.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

void ExpectJsonRefused(const std::string& bytes, const std::vector<std::string>& parts) {
  const absl::Status status = Tokenizer::Parse(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes.substr(0, 200);
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

void ExpectJsonRefused(const std::function<void(json&)>& change,
                       const std::vector<std::string>& parts) {
  json file = TokenizerJson({{"a", "b"}});
  file["added_tokens"] = nlohmann::json::array({AddedTokenJson(257, "<s>")});
  ASSERT_TRUE(Tokenizer::Parse(file.dump()).ok());
  change(file);
  ExpectJsonRefused(file.dump(), parts);
}

TEST(BadTokenizerJson, NoJsonOrAnotherOne) {
  ExpectJsonRefused("{\"model\": ", {"no JSON", "fetch the file again"});
  ExpectJsonRefused("{\"model\": \"\xff\"}", {"no JSON"});
  ExpectJsonRefused("{}", {"model: missing; ", "tokenizer.json"});
  ExpectJsonRefused("{\"model\": {}}", {"pre_tokenizer: missing; has no ByteLevel"});
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  ExpectJsonRefused(deep, {"deep"});
}

TEST(BadTokenizerJson, EveryCutFileIsRefused) {
  const std::string whole = TokenizerJson({{"a", "b"}}).dump();
  for (size_t size = 1; size < whole.size(); size += 7) {
    EXPECT_FALSE(Tokenizer::Parse(whole.substr(0, size)).ok()) << size << " bytes of it";
  }
}

TEST(BadTokenizerJson, ModelsOfOtherKinds) {
  ExpectJsonRefused([](json& file) { file["model"]["type"] = "Unigram"; },
                    {"model.type: \"Unigram\"; is not supported", "WordPiece", "SentencePiece"});
  ExpectJsonRefused([](json& file) { file["model"]["type"] = 3; },
                    {"model.type: 3; must be a string"});
  ExpectJsonRefused([](json& file) { file["model"]["dropout"] = 0.1; }, {"model.dropout: 0.1; "});
  ExpectJsonRefused([](json& file) { file["model"]["end_of_word_suffix"] = "</w>"; },
                    {"model.end_of_word_suffix: \"</w>\"; "});
  ExpectJsonRefused([](json& file) { file["model"]["continuing_subword_prefix"] = "##"; },
                    {"model.continuing_subword_prefix: \"##\"; "});
  ExpectJsonRefused([](json& file) { file["version"] = "2.0"; }, {"version: \"2.0\"; "});
}

TEST(BadTokenizerJson, StepsOfOtherKinds) {
  ExpectJsonRefused(
      [](json& file) {
        file["normalizer"] = {{"type", "Lowercase"}};
      },
      {"normalizer.type: \"Lowercase\"; is not supported"});
  ExpectJsonRefused(
      [](json& file) {
        file["pre_tokenizer"] = {{"type", "Metaspace"}};
      },
      {"pre_tokenizer.type: \"Metaspace\"; is not supported"});
  ExpectJsonRefused([](json& file) { file["pre_tokenizer"] = nullptr; },
                    {"pre_tokenizer: null; has no ByteLevel"});
  ExpectJsonRefused([](json& file) { file["pre_tokenizer"].erase("add_prefix_space"); },
                    {"pre_tokenizer.add_prefix_space: missing; "});
  ExpectJsonRefused(
      [](json& file) {
        file["decoder"] = {{"type", "Fuse"}};
      },
      {"decoder.type: \"Fuse\"; "});
  ExpectJsonRefused(
      [](json& file) {
        file["post_processor"] = {{"type", "Other"}};
      },
      {"post_processor.type: \"Other\"; "});
}

TEST(BadTokenizerJson, PatternsThatMeanSomethingElseToIcu) {
  const auto expect = [](const std::string& pattern, const std::string& part) {
    ExpectJsonRefused(
        [&pattern](json& file) {
          file["pre_tokenizer"] = {{"type", "Sequence"},
                                   {"pretokenizers",
                                    {{{"type", "Split"},
                                      {"pattern", {{"Regex", pattern}}},
                                      {"behavior", "Isolated"},
                                      {"invert", false}},
                                     file["pre_tokenizer"]}}};
        },
        {"pre_tokenizer.pretokenizers[0].pattern.Regex: ", part});
  };
  expect("a\\hb", "at character 2, \"\\hb\": an escape of this kind");
  expect("(a", "a group that is not closed");
  expect("a)", "the end of no group");
  expect("[a", "a class that is not closed");
  expect("[]", "an empty class");
  expect("[z-a]", "a range from a greater to a smaller character");
  expect("[[:alpha:]]", "a class of POSIX");
  expect("*", "a repetition of nothing");
  expect("a**", "a repetition of a repetition");
  expect("a{2}{3}", "a repetition of a repetition");
  expect("a{99999}", "a repetition so often");
  expect("(?<n>a)", "a group of this kind");
  expect("b(?i)a", "a group of this kind");
  expect("\\p{Emoji}", "this property");
  expect("(a)\\1", "an escape of this kind");
  expect(std::string(100, '('), "a group in so many others");
  expect(std::string(100, '['), "a class in so many others");
  expect("(?<=a+)b", "ICU");
}

TEST(BadTokenizerJson, ThePatternThatTakesTooLongGivesUp) {
  json file = TokenizerJson();
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Split"},
                              {"pattern", {{"Regex", "(?:a|aa|a?a)*b"}}},
                              {"behavior", "Isolated"},
                              {"invert", false}},
                             file["pre_tokenizer"]}}};
  const auto tokenizer = Tokenizer::Parse(file.dump());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_TRUE((*tokenizer)->Encode("aab").ok());
  EXPECT_THAT(std::string((*tokenizer)->Encode(std::string(200, 'a')).status().message()),
              AllOf(HasSubstr("the tokenizer: its pattern gives up"), HasSubstr("shorter lines")));
}

TEST(BadTokenizerJson, IdsThatAreTwiceOrNone) {
  ExpectJsonRefused([](json& file) { file["model"]["vocab"]["b2"] = 'b'; },
                    {"model.vocab[\"b2\"]: 98; is the id of \"b\" too"});
  for (const json& id : {json(-1), json(1.5), json("7"), json(int64_t{1} << 40), json(nullptr)}) {
    ExpectJsonRefused([&id](json& file) { file["model"]["vocab"]["b2"] = id; },
                      {"model.vocab[\"b2\"]: ", "must be an id"});
  }
  ExpectJsonRefused([](json& file) { file["model"]["vocab"] = json::object(); }, {"model.vocab: "});
  ExpectJsonRefused([](json& file) { file["model"]["vocab"] = "none"; },
                    {"model.vocab: \"none\"; "});
  ExpectJsonRefused([](json& file) { file["model"]["vocab"][""] = 300; }, {"a piece of 0 bytes"});
}

TEST(BadTokenizerJson, MergesOfPiecesThatAreMissing) {
  ExpectJsonRefused(
      [](json& file) {
        file["model"]["merges"] = {"a b", "a x"};
      },
      {"model.merges[1]: \"a x\": \"ax\" is not in model.vocab"});
  ExpectJsonRefused([](json& file) { file["model"]["merges"] = {"a b c"}; },
                    {"model.merges[0]: \"a b c\"; must be two pieces"});
  ExpectJsonRefused(
      [](json& file) {
        file["model"]["merges"] = {{"a", "b", "c"}};
      },
      {"model.merges[0]: an array of 3; must be two pieces"});
  ExpectJsonRefused(
      [](json& file) {
        file["model"]["merges"] = json::array({json::array({"a", 1})});
      },
      {"model.merges[0][1]: 1; must be a string"});
  ExpectJsonRefused([](json& file) { file["model"].erase("merges"); }, {"model.merges: missing; "});
}

TEST(BadTokenizerJson, AddedTokensWithIdsOfOthers) {
  ExpectJsonRefused([](json& file) { file["added_tokens"][0]["id"] = 98; },
                    {"added_tokens[0].id: 98; the library `tokenizers` gives \"<s>\" the id 257"});
  ExpectJsonRefused([](json& file) { file["added_tokens"][0]["id"] = 300; },
                    {"added_tokens[0].id: 300; the library"});
  ExpectJsonRefused([](json& file) { file["added_tokens"].push_back(AddedTokenJson(258, "<s>")); },
                    {"added_tokens[1].content: \"<s>\"; is there already"});
  ExpectJsonRefused([](json& file) { file["added_tokens"].push_back(AddedTokenJson(257, "<t>")); },
                    {"added_tokens[1].id: 257; is there already"});
  ExpectJsonRefused([](json& file) { file["added_tokens"][0]["lstrip"] = 1; },
                    {"added_tokens[0].lstrip: 1; must be true or false"});
  ExpectJsonRefused([](json& file) { file["added_tokens"][0]["content"] = ""; },
                    {"added_tokens[0].content: \"\"; "});
  ExpectJsonRefused([](json& file) { file["added_tokens"] = 1; },
                    {"added_tokens: 1; must be an array"});
  // A vocabulary with holes: the next id may be another piece's.
  ExpectJsonRefused(
      [](json& file) {
        file["model"]["vocab"]["late"] = 258;
        file["added_tokens"][0]["id"] = 258;
      },
      {"added_tokens[0].id: 258; is the id of \"late\""});
}

void ExpectWordPieceRefused(const std::function<void(json&)>& change,
                            const std::vector<std::string>& parts) {
  json file = WordPieceJson({"a", "##b"});
  ASSERT_TRUE(Tokenizer::Parse(file.dump()).ok());
  change(file);
  ExpectJsonRefused(file.dump(), parts);
}

TEST(BadTokenizerJson, StepsThatAreNotThoseOfBert) {
  ExpectWordPieceRefused(
      [](json& file) {
        file["normalizer"] = {{"type", "NFC"}};
      },
      {"normalizer.type: \"NFC\"; is not supported", "BertNormalizer"});
  ExpectWordPieceRefused([](json& file) { file["normalizer"] = nullptr; },
                         {"normalizer: null; that of WordPiece must be BertNormalizer"});
  ExpectWordPieceRefused(
      [](json& file) {
        file["pre_tokenizer"] = {{"type", "Whitespace"}};
      },
      {"pre_tokenizer.type: \"Whitespace\"; is not supported", "BertPreTokenizer"});
  ExpectWordPieceRefused([](json& file) { file.erase("pre_tokenizer"); },
                         {"pre_tokenizer: missing; that of WordPiece must be BertPreTokenizer"});
  ExpectWordPieceRefused(
      [](json& file) {
        file["decoder"] = {{"type", "ByteLevel"}};
      },
      {"decoder.type: \"ByteLevel\"; is not supported", "must be WordPiece"});
  ExpectWordPieceRefused(
      [](json& file) {
        file["post_processor"] = {{"type", "Other"}};
      },
      {"post_processor.type: \"Other\"; "});
  for (const char* const name : {"clean_text", "handle_chinese_chars", "lowercase"}) {
    ExpectWordPieceRefused([name](json& file) { file["normalizer"].erase(name); },
                           {absl::StrCat("normalizer.", name, ": missing; must be true or false")});
  }
  ExpectWordPieceRefused([](json& file) { file["normalizer"]["strip_accents"] = "no"; },
                         {"normalizer.strip_accents: \"no\"; must be true or false"});
  ExpectWordPieceRefused([](json& file) { file["decoder"]["cleanup"] = nullptr; },
                         {"decoder.cleanup: null; must be true or false"});
  ExpectWordPieceRefused([](json& file) { file["decoder"].erase("prefix"); },
                         {"decoder.prefix: missing; must be a string"});
  // Those of BERT with a model of bytes.
  ExpectJsonRefused([](json& file) { file["normalizer"] = WordPieceJson()["normalizer"]; },
                    {"normalizer.type: \"BertNormalizer\"; is not supported"});
}

TEST(BadTokenizerJson, WordPiecesWithoutTheirRules) {
  ExpectWordPieceRefused([](json& file) { file["model"]["unk_token"] = "<unk>"; },
                         {"model.unk_token: \"<unk>\"; is not in model.vocab"});
  ExpectWordPieceRefused([](json& file) { file["model"].erase("unk_token"); },
                         {"model.unk_token: missing; must be a string"});
  ExpectWordPieceRefused([](json& file) { file["model"]["continuing_subword_prefix"] = 2; },
                         {"model.continuing_subword_prefix: 2; must be a string"});
  for (const json& most : {json(-1), json(1001), json(0.5), json(nullptr)}) {
    ExpectWordPieceRefused(
        [&most](json& file) { file["model"]["max_input_chars_per_word"] = most; },
        {"model.max_input_chars_per_word: ", "must be a whole number from 0 to 1000"});
  }
  ExpectWordPieceRefused([](json& file) { file["model"]["vocab"]["c"] = 5; },
                         {"model.vocab[\"c\"]: 5; is the id of \"a\" too"});
  ExpectWordPieceRefused([](json& file) { file["added_tokens"][4]["id"] = 9; },
                         {"added_tokens[4].id: 9; the library `tokenizers` gives \"[MASK]\""});
}

TEST(BadTokenizerJson, ConfigsThatNameNoToken) {
  const std::string file = TokenizerJson().dump();
  const auto message = [&file](const std::string& config) {
    return std::string(Tokenizer::Parse(file, config).status().message());
  };
  EXPECT_THAT(message(R"({"eos_token": "</s>"})"),
              HasSubstr("tokenizer_config.json: eos_token: \"</s>\"; is no token"));
  EXPECT_THAT(message(R"({"eos_token": 3})"), HasSubstr("eos_token: 3; must be a string"));
  EXPECT_THAT(message("{"), HasSubstr("tokenizer_config.json: no JSON"));
}

}  // namespace
}  // namespace stagecoach
