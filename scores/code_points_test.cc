#include "scores/code_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecoach {
namespace {

using testing::ElementsAre;

constexpr char32_t kEnd = 0x110000;

TEST(CodePoints, OfUtf8ComeBackAsTheyWere) {
  for (char32_t value = 0; value < kEnd; ++value) {
    if (value == 0xD800) value = 0xE000;
    std::string text;
    AppendCodePoint(value, &text);
    const CodePoint point = CodePointAt(text, 0);
    ASSERT_EQ(point.value, value);
    ASSERT_EQ(point.bytes, text.size()) << static_cast<uint32_t>(value);
  }
}

TEST(CodePoints, OfMalformedTextAreItsBytes) {
  for (const std::string text :
       {"\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xff", "\xc3(", "\xc0"}) {
    std::string back;
    for (size_t i = 0; i < text.size();) {
      const CodePoint point = CodePointAt(text, i);
      EXPECT_EQ(point.bytes, 1u);
      AppendCodePoint(point.value, &back);
      i += point.bytes;
    }
    EXPECT_EQ(back, text);
  }
}

TEST(WhiteSpace, IsPythons) {
  int count = 0;
  for (char32_t value = 0; value < kEnd; ++value) count += IsWhiteSpace(value) ? 1 : 0;
  EXPECT_EQ(count, 29);
  for (const char32_t value : {U'\t', U'\v', U'\x1c', U'\x1f', U' ', U'\x85', U'\xa0', U'\u1680',
                               U'\u2000', U'\u200a', U'\u2028', U'\u202f', U'\u205f', U'\u3000'}) {
    EXPECT_TRUE(IsWhiteSpace(value)) << static_cast<uint32_t>(value);
  }
  for (const char32_t value : {U'\x1b', U'\u180e', U'\u200b', U'\u2060', U'\ufeff'}) {
    EXPECT_FALSE(IsWhiteSpace(value)) << static_cast<uint32_t>(value);
  }
}

TEST(WhiteSpace, DividesWordsAndGoesFromTheEnd) {
  EXPECT_THAT(SplitWords("\u3000 a\u00a0b\u200bc\t\u2003d\u0085"),
              ElementsAre("a", "b\u200bc", "d"));
  EXPECT_THAT(SplitWords(" \u2028"), ElementsAre());
  EXPECT_EQ(WithoutTrailingSpace(" a b\u3000\r\n"), " a b");
  EXPECT_EQ(WithoutTrailingSpace("\u3000\u2000"), "");
}

}  // namespace
}  // namespace stagecoach
