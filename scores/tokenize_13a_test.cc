// Expected tokens are sacreBLEU 2.6.0's.
#include "scores/tokenize_13a.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

TEST(Tokenize13a, MakesPunctuationTokens) {
  EXPECT_EQ(Tokenize13a("Hello, world!"), "Hello , world !");
  EXPECT_EQ(Tokenize13a("(a)[b]{c}~`^_@$%&'*+/:;<=>?\\|\"#-"),
            "( a ) [ b ] { c } ~ ` ^ _ @ $ % & ' * + / : ; < = > ? \\ | \" # -");
  EXPECT_EQ(Tokenize13a("..., a.b 5.x x.5"), ". . . , a . b 5 . x x . 5");
}

TEST(Tokenize13a, KeepsNumbersWhole) {
  EXPECT_EQ(Tokenize13a("1,000.5 and 3.14, or 7."), "1,000.5 and 3.14 , or 7 .");
  EXPECT_EQ(Tokenize13a("$1,5.00-%"), "$ 1,5.00 - %");
  EXPECT_EQ(Tokenize13a("1.-2 -3"), "1 . -2 -3");
  EXPECT_EQ(Tokenize13a("well-known 10-20 a-1"), "well-known 10 - 20 a-1");
}

TEST(Tokenize13a, UnescapesOneEntityAfterAnother) {
  EXPECT_EQ(Tokenize13a("&quot;Quoted&quot; &amp;lt; a&gt;b"), "\" Quoted \" < a > b");
  EXPECT_EQ(Tokenize13a("<skipped>x &amp;quot;"), "x & quot ;");
}

TEST(Tokenize13a, JoinsLinesAndTakesPythonsWhiteSpace) {
  EXPECT_EQ(Tokenize13a("semi-\nattached\nline"), "semiattached line");
  EXPECT_EQ(Tokenize13a("a\u00a0b\u3000c\u200bd\x1c"
                        "e"),
            "a b c\u200bd e");
  EXPECT_EQ(Tokenize13a(" \t\u2003"), "");
  EXPECT_EQ(Tokenize13a(""), "");
}

TEST(Tokenize13a, TakesACharacterOfSeveralBytesAsOneThatIsNoDigit) {
  EXPECT_EQ(Tokenize13a("é.ü,ß3.é"), "é . ü , ß3 . é");
  EXPECT_EQ(Tokenize13a("٣.٤ ３,４"), "٣ . ٤ ３ , ４") << "digits are ASCII's";
}

}  // namespace
}  // namespace stagecoach
