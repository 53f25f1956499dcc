#include "base/threads/work_words.h"

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

TEST(WorkWords, GoToTheScopeOfTheThread) {
  WorkWords outer, inner;
  TellWork("nobody hears it");
  const WorkWordsScope scope(&outer);
  TellWork("encodes a");
  {
    const WorkWordsScope nested(&inner);
    TellWork("encodes b");
  }
  EXPECT_EQ(outer.words(), "encodes a");
  EXPECT_EQ(inner.words(), "encodes b");
  TellWork("");
  EXPECT_EQ(outer.words(), "");
}

TEST(ShareText, IsRoundedDownAndReadBack) {
  EXPECT_EQ(ShareText("encodes a.txt", 0, 1000), "encodes a.txt: 0 %");
  EXPECT_EQ(ShareText("encodes a.txt", 419, 1000), "encodes a.txt: 41 %");
  EXPECT_EQ(ShareText("encodes a.txt", 999'999, 1'000'000), "encodes a.txt: 99 %");
  EXPECT_EQ(ShareText("encodes a.txt", 1000, 1000), "encodes a.txt: 100 %");
  EXPECT_EQ(ShareText("encodes a.txt", 0, 0), "encodes a.txt: 100 %");
  EXPECT_EQ(PercentIn("stage 0 (a): encodes x: 1 %: 41 %"), 41);
  EXPECT_EQ(PercentIn("encodes a.txt: 100 %"), 100);
  for (const char* const none :
       {"", "41 %", "encodes a.txt", "a: 41", "a: 101 %", "a: -1 %", "a: x %", ":  %"}) {
    EXPECT_EQ(PercentIn(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace stagecoach
