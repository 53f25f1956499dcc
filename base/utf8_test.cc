#include "base/utf8.h"

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

TEST(Utf8Test, OnlyWellFormedTextIsTaken) {
  EXPECT_TRUE(IsUtf8Text("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
  for (const char* bad : {"\xc3", "\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                          "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80"}) {
    EXPECT_FALSE(IsUtf8Text(bad));
  }
}

TEST(Utf8Test, NamesAndMessagesAreShownWithoutWhatTheyMayNotHold) {
  EXPECT_EQ(ShownName("caf\xc3\xa9 \xe2\x82\xac.png"), "caf\xc3\xa9 \xe2\x82\xac.png");
  EXPECT_EQ(ShownName("\xff\xfe\n/\xc1\x1b[31m.png"), "\\xff\\xfe\\x0a/\\xc1\\x1b[31m.png");
  EXPECT_EQ(ShownName("cut \xe2\x82"), "cut \\xe2\\x82");
  EXPECT_EQ(ShownText("two\nlines\tand \x7f"), "two\nlines\tand \\x7f");
  EXPECT_EQ(ShownText("\xc2\x9b"
                      "31m \u202egnp.exe \u2067 \u2028 \u200f \u061c"),
            "\\xc2\\x9b31m \\xe2\\x80\\xaegnp.exe \\xe2\\x81\\xa7 \\xe2\\x80\\xa8 \\xe2\\x80\\x8f "
            "\\xd8\\x9c");
  EXPECT_EQ(ShownText("\u00a0\u2020\u2060\u206a"), "\u00a0\u2020\u2060\u206a") << "beside them";
  for (const char* text : {"\xff\xfe", "\x1b[2J", "\xf0\x9f\x98", "ok"}) {
    EXPECT_TRUE(IsUtf8Text(ShownName(text)));
    EXPECT_TRUE(IsUtf8Text(ShownText(text)));
  }
}

}  // namespace
}  // namespace stagecoach
