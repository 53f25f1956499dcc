// Files that are no model, and models with something wrong in them.
#include "stage/tokens/sentence_piece/model_file.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/tokens/model_file_testing.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

using absl::StatusCode;
using std::string_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;

TEST(ModelFile, AGoodOneHasItsParts) {
  const std::string rules = WireBytes(1, "nmt_nfkc") + WireNumber(3, 0) + WireNumber(4, 0);
  const auto model = ParseModelFile(ModelFileText(
      UsualPieces({{"a", -1}, {"<2de>", 0, PieceType::kUserDefined}}), WireNumber(3, 2), rules));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, TokenizerKind::kBpe);
  EXPECT_EQ(model->pieces.size(), 6u);
  EXPECT_EQ(model->pieces[5].type, PieceType::kUserDefined);
  EXPECT_EQ(model->pad, 0);
  EXPECT_EQ(model->unknown, 1);
  EXPECT_EQ(model->begin, 2);
  EXPECT_EQ(model->end, 3);
  EXPECT_EQ(model->rules.name, "nmt_nfkc");
  EXPECT_FALSE(model->rules.add_dummy_prefix);
  EXPECT_FALSE(model->rules.remove_extra_spaces);
  EXPECT_TRUE(model->rules.escape_spaces);
}

TEST(ModelFile, SpecialPiecesAreFoundByTheNamesThatTheFileGives) {
  const std::vector<Piece> pieces = {{"[U]", 0, PieceType::kUnknown},
                                     {"[B]", 0, PieceType::kControl},
                                     {"[E]", 0, PieceType::kControl},
                                     {"<pad>", -1, PieceType::kNormal}};
  const auto model =
      ParseModelFile(ModelFileText(pieces, WireBytes(46, "[B]") + WireBytes(47, "[E]")));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->unknown, 0);
  EXPECT_EQ(model->begin, 1);
  EXPECT_EQ(model->end, 2);
  EXPECT_EQ(model->pad, -1) << "a normal piece of that name is no padding";
}

void ExpectRefused(const std::string& bytes, const std::string& reason) {
  EXPECT_THAT(Tokenizer::Parse(bytes).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(reason)));
}

TEST(ModelFile, ADamagedOneIsRefusedWithTheReason) {
  ExpectRefused("", "an empty file, not a SentencePiece model");
  ExpectRefused(WireNumber(9, 1), "it has no pieces");
  ExpectRefused(ModelFileText({{"a", -1}}), "none of its pieces is the unknown one");
  ExpectRefused(ModelFileText(UsualPieces({{"?", 0, PieceType::kUnknown}})), "two of its pieces");
  ExpectRefused(ModelFileText(UsualPieces({{"", -1}})), "piece 4: it is empty");
  ExpectRefused(ModelFileText(UsualPieces({{"\xff", -1}})), "piece 4: it is not UTF-8");
  ExpectRefused(ModelFileText(UsualPieces({{"a\0b"s, -1}})), "piece 4: it is not UTF-8");
  ExpectRefused(ModelFileText(UsualPieces({{"a", NAN}})), "its score is not finite");
  ExpectRefused(ModelFileText(UsualPieces({{"a", -INFINITY}})), "its score is not finite");
  ExpectRefused(ModelFileText(UsualPieces({{"a", 0, PieceType{7}}})), "its type is unknown");
  ExpectRefused(ModelFileText(UsualPieces({{"a", -1}, {"a", -2}})),
                "pieces 4 and 5 are both \"a\"");
  ExpectRefused(ModelFileText(UsualPieces({{std::string(8000, 'a'), -1}})), "8000 bytes");
  ExpectRefused(ModelFileText(UsualPieces({{"<0x41>", 0, PieceType::kByte}})), "is no byte");
  ExpectRefused(ModelFileText(UsualPieces({{"a", -1}}), WireNumber(35, 1)),
                "no piece for the byte <0x00>");
  ExpectRefused(ModelFileText(UsualPieces({{"a", -1}}), WireBytes(44, "\xff")), "not UTF-8");
}

TEST(ModelFile, RulesForCharactersThatAreDamagedAreRefused) {
  const auto with_rules = [](const std::string& rules) {
    return ModelFileText(LetterPieces(), "", WireBytes(2, rules));
  };
  ExpectRefused(with_rules("abc"), "rules for characters");
  ExpectRefused(with_rules("\x04\0\0\0"s), "rules for characters");
  ExpectRefused(with_rules("\xff\xff\xff\xff,,,,,,,,"), "rules for characters");
  ExpectRefused(with_rules("\x04\0\0\0\0\0\0\0x"s), "rules for characters");
  // An array that leads out of itself: no rule applies.
  const auto tokenizer = Tokenizer::Parse(with_rules("\x04\0\0\0\xff\xff\xff\x7f\0"s));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_TRUE((*tokenizer)->Encode("any text").ok());
}

TEST(ModelFile, WhatIsNotSupportedIsNamed) {
  ExpectRefused(ModelFileText(LetterPieces(), WireNumber(3, 4)), "neither of kind unigram nor bpe");
  ExpectRefused(ModelFileText(LetterPieces()) + WireBytes(5, WireBytes(2, "rules")),
                "changes texts after decoding");
}

// Symptom of SentencePiece's own reader: it ends the process.
TEST(ModelFile, EveryBeginningAndEveryChangedByteIsReadWithoutHarm) {
  const std::string good =
      ModelFileText(UsualPieces({{"\u2581", -1}, {"\u2581the", -3}, {"t", -4}, {"h", -4}}),
                    WireNumber(3, 1) + WireNumber(24, 0) + WireBytes(46, "<s>"),
                    WireBytes(1, "nmt") + WireBytes(2, "\x04\0\0\0\x01\x02\x03\x04\0"s));
  const auto use = [](const std::string& bytes) {
    const auto tokenizer = Tokenizer::Parse(bytes);
    if (!tokenizer.ok()) return;
    const auto ids = (*tokenizer)->Encode("the cat");
    if (!ids.ok()) return;
    EXPECT_TRUE((*tokenizer)->Decode(*ids).ok());
  };
  use(good);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(Tokenizer::Parse(good.substr(0, size)).ok()) << size << " bytes of it";
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int change : {1, 2, 0x10, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      use(bytes);
    }
  }
}

TEST(ModelFile, LoadNamesThePathTheReasonAndTheRemedy) {
  const TemporaryFolder folder;
  FileSystem& files = *PosixFileSystem();
  EXPECT_THAT(Tokenizer::Load(files, folder.File("gone")).status(),
              StatusIs(StatusCode::kNotFound, HasSubstr("gone")));
  EXPECT_THAT(Tokenizer::Load(files, folder.Write("empty", "")).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/empty: "), HasSubstr("SentencePiece model"))));
  EXPECT_THAT(Tokenizer::Load(files, folder.Write("text", "Once upon a time\n")).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/text: "), HasSubstr("SentencePiece model"))));
  EXPECT_THAT(
      Tokenizer::Load(files, folder.Write("packed", "\x1f\x8b\x08\0\0\0\0\0\0\0"s)).status(),
      StatusIs(StatusCode::kInvalidArgument, AllOf(HasSubstr("/packed: "), HasSubstr("gzip"))));
  EXPECT_THAT(
      Tokenizer::Load(files, folder.Write("cut", ModelFileText(LetterPieces()).substr(0, 99)))
          .status(),
      StatusIs(StatusCode::kInvalidArgument,
               AllOf(HasSubstr("/cut: not a SentencePiece model, or a damaged one"),
                     HasSubstr("stagecoach tokenizer train"))));
  const std::string large = folder.Write("large", "");
  std::filesystem::resize_file(large, kMostModelBytes + 1);
  EXPECT_THAT(Tokenizer::Load(files, large).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/large: "), HasSubstr("33554433 bytes, of 33554432"))));
  const auto good = Tokenizer::Load(files, folder.Write("good", ModelFileText(LetterPieces())));
  EXPECT_TRUE(good.ok()) << good.status();
}

}  // namespace
}  // namespace stagecoach
