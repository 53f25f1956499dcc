#include "stage/tokens/token_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/errors/check.h"
#include "stage/tokens/model_file_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<const Tokenizer> TextsTokenizer(const std::string& bytes) {
  auto tokenizer = Tokenizer::Parse(bytes);
  CHECK(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(TokenText, WithoutATokenizerTokensAreBytes) {
  TokenText text(nullptr, 128);
  EXPECT_THAT(*text.Begin("--prompt", "ab"), ElementsAre('a', 'b'));
  EXPECT_EQ(text.Add('\n'), "\n");
  EXPECT_EQ(text.Finish(), "");
  EXPECT_THAT(TokenText(nullptr, 128).Begin("--prompt", "caf\xc3\xa9").status().message(),
              HasSubstr("--prompt: byte 195"));
}

// Symptom: a character that two reports divided was none in either of them.
TEST(TokenText, BytesOfACharacterComeTogetherWithoutATokenizerToo) {
  TokenText text(nullptr, 256);
  ASSERT_TRUE(text.Begin("--prompt", "x").ok());
  for (const auto& [byte, told] : std::vector<std::pair<int, const char*>>{{0xc3, ""},
                                                                           {0xa9, "\u00e9"},
                                                                           {0xe2, ""},
                                                                           {0x82, ""},
                                                                           {0xac, "\u20ac"},
                                                                           {0xff, "\xff"},
                                                                           {0xe2, ""},
                                                                           {0x41, "\xe2\x41"},
                                                                           {0xf0, ""},
                                                                           {0x9f, ""}}) {
    EXPECT_EQ(text.Add(byte), told) << byte;
  }
  EXPECT_EQ(text.Finish(), "\xf0\x9f");
}

TEST(TokenText, TheEndIdIsTheEndOfALineAndSpacesStayWhereTheyAre) {
  const auto letters = TextsTokenizer(ModelFileText(LetterPieces()));
  TokenText text(letters.get(), letters->ids());
  // The mark of a space is 4, "a" is 69.
  EXPECT_THAT(*text.Begin("--prompt", "a\nb"), ElementsAre(4, 69, 3, 4, 70));
  EXPECT_EQ(text.Add(69), "a");
  EXPECT_EQ(text.Add(4), " ");
  EXPECT_EQ(text.Add(70), "b");
  EXPECT_EQ(text.Add(3), "\n");
  EXPECT_EQ(text.Add(4), "") << "the space in front of a line is none of the text";
  EXPECT_EQ(text.Add(69), "a");
  EXPECT_EQ(text.Finish(), "");
}

TEST(TokenText, BytesOfACharacterComeTogether) {
  const auto bytes = TextsTokenizer(ModelFileText(BytePieces(), WireNumber(35, 1)));
  TokenText text(bytes.get(), bytes->ids());
  ASSERT_TRUE(text.Begin("--prompt", "x").ok());
  EXPECT_EQ(text.Add(4 + 0xc3), "");
  EXPECT_EQ(text.Add(4 + 0xa9), "é");
  EXPECT_EQ(text.Add(4 + 0xc3), "");
  EXPECT_EQ(text.Finish(), "\ufffd");
}

// Of a long line the text is decoded by parts.
TEST(TokenText, LongLinesAreTheTextOfAllTokens) {
  const auto letters = TextsTokenizer(ModelFileText(LetterPieces()));
  const auto bytes = TextsTokenizer(ModelFileText(BytePieces(), WireNumber(35, 1)));
  for (const Tokenizer* tokenizer : {letters.get(), bytes.get()}) {
    TokenText text(tokenizer, tokenizer->ids());
    std::vector<int32_t> ids = *text.Begin("--prompt", "x");
    std::string told = *tokenizer->Decode(ids);
    for (int i = 0; i < 700; ++i) {
      // Letters and spaces; characters of two and three bytes.
      const int32_t kind = i / 100 == 3 ? 0 : i * i % 11;
      std::vector<int32_t> more = {tokenizer == letters.get() ? kind < 4 ? 4 : 69 + kind : 4 + 'a'};
      if (tokenizer == bytes.get() && kind < 3) more = {4 + 0xc3, 4 + 0xa9};
      if (tokenizer == bytes.get() && kind > 8) more = {4 + 0xe2, 4 + 0x82, 4 + 0xac};
      for (const int32_t id : more) {
        told += text.Add(id);
        ids.push_back(id);
      }
    }
    told += text.Finish();
    EXPECT_EQ(told, *tokenizer->Decode(ids));
  }
}

TEST(TokenText, APromptThatGivesNoTokenIsRefused) {
  const auto letters = TextsTokenizer(ModelFileText(LetterPieces()));
  EXPECT_THAT(TokenText(letters.get(), letters->ids()).Begin("--prompt", "").status().message(),
              HasSubstr("--prompt: "));
  EXPECT_THAT(
      TokenText(letters.get(), letters->ids()).Begin("--prompt", "caf\xe9").status().message(),
      HasSubstr("--prompt: the text is not UTF-8"));
}

}  // namespace
}  // namespace stagecoach
