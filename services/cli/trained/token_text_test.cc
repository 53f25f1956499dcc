#include "services/cli/trained/token_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/errors/check.h"
#include "stage/tokens/model_file_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<const Tokenizer> Made(const std::string& bytes) {
  auto tokenizer = Tokenizer::Parse(bytes);
  CHECK(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(TokenText, WithoutATokenizerTokensAreBytes) {
  TokenText text(nullptr, 128);
  EXPECT_THAT(*text.Begin("ab"), ElementsAre('a', 'b'));
  EXPECT_EQ(text.Add('\n'), "\n");
  EXPECT_EQ(text.Finish(), "");
  EXPECT_THAT(TokenText(nullptr, 128).Begin("caf\xc3\xa9").status().message(),
              HasSubstr("--prompt: byte 195"));
}

TEST(TokenText, TheEndIdIsTheEndOfALineAndSpacesStayWhereTheyAre) {
  const auto letters = Made(ModelFileText(LetterPieces()));
  TokenText text(letters.get(), letters->ids());
  // The mark of a space is 4, "a" is 69.
  EXPECT_THAT(*text.Begin("a\nb"), ElementsAre(4, 69, 3, 4, 70));
  EXPECT_EQ(text.Add(69), "a");
  EXPECT_EQ(text.Add(4), " ");
  EXPECT_EQ(text.Add(70), "b");
  EXPECT_EQ(text.Add(3), "\n");
  EXPECT_EQ(text.Add(4), "") << "the space in front of a line is none of the text";
  EXPECT_EQ(text.Add(69), "a");
  EXPECT_EQ(text.Finish(), "");
}

TEST(TokenText, BytesOfACharacterComeTogether) {
  const auto bytes = Made(ModelFileText(BytePieces(), WireNumber(35, 1)));
  TokenText text(bytes.get(), bytes->ids());
  ASSERT_TRUE(text.Begin("x").ok());
  EXPECT_EQ(text.Add(4 + 0xc3), "");
  EXPECT_EQ(text.Add(4 + 0xa9), "é");
  EXPECT_EQ(text.Add(4 + 0xc3), "");
  EXPECT_EQ(text.Finish(), "\ufffd");
}

TEST(TokenText, APromptThatGivesNoTokenIsRefused) {
  const auto letters = Made(ModelFileText(LetterPieces()));
  EXPECT_THAT(TokenText(letters.get(), letters->ids()).Begin("").status().message(),
              HasSubstr("--prompt: "));
  EXPECT_THAT(TokenText(letters.get(), letters->ids()).Begin("caf\xe9").status().message(),
              HasSubstr("--prompt: the text is not UTF-8"));
}

}  // namespace
}  // namespace stagecoach
