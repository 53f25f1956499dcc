// A tokenizer.json in BERT's form, made by hand; tests/oracle/tokenizers_ids.py compares with the
// library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors/check.h"
#include "stage/tokens/token_text.h"
#include "stage/tokens/tokenizer.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<const Tokenizer> MadeOfPieces(const json& file, const std::string& config = "") {
  auto tokenizer = Tokenizer::Parse(file.dump(), config);
  CHECK(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// The pieces of a text, with "|" between them.
std::string PiecesOf(const json& file, const std::string& text) {
  const auto tokenizer = MadeOfPieces(file);
  std::string pieces;
  const std::vector<int32_t> ids = tokenizer->Encode(text).value();
  for (const int32_t id : ids) {
    pieces += (pieces.empty() ? "" : "|") + tokenizer->piece(id).text;
  }
  return pieces;
}

json WithNormalizer(json file, bool cleans, bool parts_ideographs, const json& strips_accents,
                    bool lowercases) {
  file["normalizer"] = {{"type", "BertNormalizer"},
                        {"clean_text", cleans},
                        {"handle_chinese_chars", parts_ideographs},
                        {"strip_accents", strips_accents},
                        {"lowercase", lowercases}};
  return file;
}

std::string DecodedPieces(const std::vector<std::string>& pieces, bool cleanup) {
  json file = WordPieceJson(pieces);
  file["decoder"]["cleanup"] = cleanup;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < pieces.size(); ++i) ids.push_back(static_cast<int32_t>(5 + i));
  return MadeOfPieces(file)->Decode(ids).value();
}

TEST(WordPiece, AWordIsItsLongestPieces) {
  const json file = WordPieceJson({"un", "una", "##f", "##fa", "##able", "##a", "able"});
  EXPECT_EQ(PiecesOf(file, "unable"), "[UNK]") << "una goes first, and no piece begins with ble";
  EXPECT_EQ(PiecesOf(file, "unfable able"), "[UNK]|able") << "##fa goes first";
  EXPECT_EQ(PiecesOf(file, "unf unfa unaa able una un"), "un|##f|un|##fa|una|##a|able|una|un");
  EXPECT_EQ(PiecesOf(file, "able##able"), "able|[UNK]|[UNK]|able") << "marks stand alone";
  EXPECT_THAT(MadeOfPieces(file)->Encode("").value(), IsEmpty());
  EXPECT_THAT(MadeOfPieces(file)->Encode(" \n\t ").value(), IsEmpty());
}

TEST(WordPiece, APrefixAloneIsNoRest) {
  EXPECT_EQ(PiecesOf(WordPieceJson({"a", "##", "##b"}), "ab ac"), "a|##b|[UNK]");
  json file = WordPieceJson({"a", "b"});
  file["model"]["continuing_subword_prefix"] = "";
  EXPECT_EQ(PiecesOf(file, "abba"), "a|b|b|a");
}

TEST(WordPiece, AWordOfTooManyCharactersIsUnknown) {
  json file = WordPieceJson({"\u00f8", "##\u00f8", "x"});
  file["model"]["max_input_chars_per_word"] = 3;
  EXPECT_EQ(PiecesOf(file, "\u00f8\u00f8\u00f8 x"), "\u00f8|##\u00f8|##\u00f8|x") << "six bytes";
  EXPECT_EQ(PiecesOf(file, "\u00f8\u00f8\u00f8\u00f8 x"), "[UNK]|x");
}

TEST(WordPiece, WordsEndAtSpacesAndAroundMarks) {
  const json file = WordPieceJson({"a", "b", "##b", "$", ".", "\u2014", "\u3002", "\u166d"});
  EXPECT_EQ(PiecesOf(file, "a\u00a0b\u3000ab"), "a|b|a|##b");
  EXPECT_EQ(PiecesOf(file, "a..b$a"), "a|.|.|b|$|a");
  EXPECT_EQ(PiecesOf(file, "a\u2014b\u3002ab"), "a|\u2014|b|\u3002|a|##b");
  EXPECT_EQ(PiecesOf(file, "a\u166db"), "a|\u166d|b") << "a mark in Unicode 8.0, later none";
  EXPECT_EQ(PiecesOf(file, "a\u2e43b"), "[UNK]") << "a mark since Unicode 9.0";
}

TEST(WordPiece, CleaningTakesControlsAway) {
  const json file = WordPieceJson({"ab", "a", "b", "##\u0378", "##\u200b"});
  const json clean = WithNormalizer(file, true, false, false, false);
  EXPECT_EQ(PiecesOf(clean,
                     "a\x01\x7f\u200b\ufeff\ufffd\ue000"
                     "b a\rb a\u2028"
                     "b"),
            "ab|a|b|a|b");
  EXPECT_EQ(PiecesOf(clean, "a\u0378"), "a|##\u0378") << "no character is no control";
  const json raw = WithNormalizer(file, false, false, false, false);
  EXPECT_EQ(PiecesOf(raw, "a\u200b a\x01"), "a|##\u200b|[UNK]");
}

TEST(WordPiece, IdeographsStandAlone) {
  const json file = WordPieceJson({"\u6771", "##\u4eac", "\u4eac", "a", "\u3042", "##\u3042"});
  EXPECT_EQ(PiecesOf(file, "a\u6771\u4eac\u3042\u3042"), "a|\u6771|\u4eac|\u3042|##\u3042");
  EXPECT_EQ(PiecesOf(WithNormalizer(file, true, false, false, false), "\u6771\u4eac"),
            "\u6771|##\u4eac");
}

TEST(WordPiece, AccentsFollowTheLetterCase) {
  const json file = WordPieceJson({"etude", "\u00c9tude", "\u00e9tude", "Etude", "i\u0307", "i"});
  const auto etude = [&file](const json& strips, bool lowercases) {
    return PiecesOf(WithNormalizer(file, true, true, strips, lowercases), "\u00c9tude");
  };
  EXPECT_EQ(etude(nullptr, true), "etude");
  EXPECT_EQ(etude(nullptr, false), "\u00c9tude");
  EXPECT_EQ(etude(true, false), "Etude");
  EXPECT_EQ(etude(false, true), "\u00e9tude");
  EXPECT_EQ(PiecesOf(WithNormalizer(file, true, true, false, true), "\u0130"), "i\u0307");
  EXPECT_EQ(PiecesOf(WithNormalizer(file, true, true, nullptr, true), "\u0130"), "i");
}

TEST(WordPiece, LettersOfUnicode17HaveTheirLowerCase) {
  const json file = WordPieceJson({"\u1c8a", "\u0264", "\U00010d70", "\U00016ed3", "\u03c3"});
  EXPECT_EQ(PiecesOf(file, "\u1c89 \ua7cb \U00010d50 \U00016eb8"),
            "\u1c8a|\u0264|\U00010d70|\U00016ed3");
  EXPECT_EQ(PiecesOf(file, "\u03a3"), "\u03c3");
}

TEST(WordPiece, AddedTokensAreFoundBeforeAllElse) {
  json file = WordPieceJson({"a", "##b", "["});
  EXPECT_EQ(PiecesOf(file, "A[MASK]ab[SEP][mask"), "a|[MASK]|a|##b|[SEP]|[|[UNK]");
  file["added_tokens"].push_back(AddedTokenJson(8, "\u00c9B", false));
  EXPECT_EQ(PiecesOf(file, "\u00c9B eb"), "\u00c9B|[UNK]");
  file["added_tokens"].back()["normalized"] = true;
  EXPECT_EQ(PiecesOf(file, "\u00c9B eb"), "\u00c9B|\u00c9B");
  EXPECT_EQ(MadeOfPieces(file)->Decode(std::vector<int32_t>{5, 8}).value(), "a eb");
}

TEST(WordPiece, PiecesOfAWordComeTogetherAgain) {
  EXPECT_EQ(DecodedPieces({"un", "##able", "able", "##x"}, true), "unable ablex");
  EXPECT_EQ(DecodedPieces({"##able", "a"}, true), "##able a") << "nothing stands before it";
}

TEST(WordPiece, CleanupTakesSpacesBeforeEnglishMarks) {
  const std::vector<std::string> pieces = {"a", ".", "'", "s", "?", ",", "'s", "n't", "do not"};
  EXPECT_EQ(DecodedPieces(pieces, false), "a . ' s ? , 's n't do not");
  EXPECT_EQ(DecodedPieces(pieces, true), "a. ' s?,'sn't don't") << "each piece by itself";
}

TEST(WordPiece, IdsWithoutAPieceHaveNoText) {
  json file = WordPieceJson({"a"});
  file["model"]["vocab"]["b"] = 8;
  const auto tokenizer = MadeOfPieces(file);
  EXPECT_EQ(tokenizer->ids(), 9);
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{6, 8, 7, 5}).value(), "b a");
  EXPECT_FALSE(tokenizer->Decode(std::vector<int32_t>{9}).ok());
  EXPECT_FALSE(tokenizer->Decode(std::vector<int32_t>{-1}).ok());
  EXPECT_FALSE(tokenizer->Encode("caf\xe9").ok());
}

TEST(WordPiece, ItsSpecialTokensHaveAMeaning) {
  json file = WordPieceJson({"a"});
  const auto plain = MadeOfPieces(file);
  EXPECT_EQ(plain->kind_name(), "word_piece");
  EXPECT_EQ(plain->pad(), 0);
  EXPECT_EQ(plain->unknown(), 1);
  EXPECT_EQ(plain->begin(), 2);
  EXPECT_EQ(plain->end(), 3);
  EXPECT_EQ(plain->mask(), 4);
  EXPECT_FALSE(plain->begins_texts());
  EXPECT_TRUE(plain->Fits(6));
  EXPECT_TRUE(plain->Fits(8)) << "networks have rows that no piece has";
  EXPECT_EQ(StopToken(plain.get(), 6, "--stop", "[MASK]").value(), 4);
  EXPECT_EQ(StopToken(plain.get(), 6, "--stop", "[UNK]").value(), 1);

  const json cls = {{"SpecialToken", {{"id", "[CLS]"}, {"type_id", 0}}}},
             sep = {{"SpecialToken", {{"id", "[SEP]"}, {"type_id", 0}}}},
             text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  file["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {cls, text, sep}}};
  EXPECT_TRUE(MadeOfPieces(file)->begins_texts());
  file["post_processor"] = {
      {"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}};
  EXPECT_TRUE(MadeOfPieces(file)->begins_texts());
  EXPECT_EQ(PiecesOf(file, "a"), "a") << "ids are those without special tokens around the text";

  const auto named = MadeOfPieces(file, R"({"mask_token": {"content": "a"}, "pad_token": null})");
  EXPECT_EQ(named->mask(), 5);
  EXPECT_EQ(named->pad(), -1);
  file["added_tokens"].erase(4);
  EXPECT_EQ(MadeOfPieces(file)->mask(), -1) << "a piece with its name";
}

TEST(WordPiece, OldFilesDoNotNameTheirModel) {
  json file = WordPieceJson({"a", "##b"});
  file["model"].erase("type");
  EXPECT_EQ(PiecesOf(file, "AB"), "a|##b");
}

TEST(WordPiece, StreamedTextIsThatOfTheWholeText) {
  const auto tokenizer = MadeOfPieces(WordPieceJson({"un", "##able", ".", "##s", "\ufffd"}));
  TokenText text(tokenizer.get(), tokenizer->ids());
  ASSERT_TRUE(text.Begin("--prompt", "Un").ok());
  EXPECT_EQ(text.Add(6), "able");
  EXPECT_EQ(text.Add(7), ".");
  EXPECT_EQ(text.Add(5), " un");
  std::string told, whole;
  for (int i = 0; i < 300; ++i) {
    for (const int32_t id : {5, 6, 8, 7}) told += text.Add(id);
    whole += " unables.";
  }
  EXPECT_EQ(told, whole) << "a long text is cut between its pieces";
  EXPECT_EQ(text.Add(9), " ") << "it may be the beginning of a character";
  EXPECT_EQ(text.Finish(), "\ufffd");
}

}  // namespace
}  // namespace stagecoach
