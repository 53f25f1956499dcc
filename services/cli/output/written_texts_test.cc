// Lines from pieces: out of order, repeated after a loss of stages, and cut anywhere.
#include "services/cli/output/written_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "services/common/convert/convert_control.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> TextsOf(const std::vector<WrittenLine>& lines) {
  std::vector<std::string> texts;
  for (const WrittenLine& line : lines) texts.push_back(line.text);
  return texts;
}

TEST(WrittenTexts, ALineWaitsForThoseBeforeIt) {
  WrittenTexts texts(3);
  EXPECT_EQ(texts.Take({.line = 1, .text = "one", .done = true}), "one");
  EXPECT_THAT(texts.TakeWhole(), IsEmpty());
  EXPECT_EQ(texts.Take({.line = 0, .text = "ze"}), "ze");
  EXPECT_THAT(texts.TakeWhole(), IsEmpty()) << "its last piece is missing";
  EXPECT_EQ(texts.Take({.line = 0, .offset = 2, .text = "ro", .done = true}), "ro");
  EXPECT_THAT(TextsOf(texts.TakeWhole()), ElementsAre("zero", "one"));
  EXPECT_THAT(texts.TakeWhole(), IsEmpty()) << "each once";
  EXPECT_EQ(texts.Take({.line = 2, .text = "two", .done = true}), "two");
  EXPECT_THAT(TextsOf(texts.TakeWhole()), ElementsAre("two"));
}

TEST(WrittenTexts, TheLastPieceSaysWhatIsKnownOfTheLine) {
  WrittenTexts texts(1);
  texts.Take({.text = "a", .tokens = 7, .score = 7, .ended = true});
  texts.Take({.offset = 1, .text = "", .done = true, .tokens = 2, .score = -0.5});
  const std::vector<WrittenLine> lines = texts.TakeWhole();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "a");
  EXPECT_EQ(lines[0].tokens, 2);
  EXPECT_EQ(lines[0].score, -0.5);
  EXPECT_FALSE(lines[0].ended);
}

TEST(WrittenTexts, AnEmptyTextIsALineToo) {
  WrittenTexts texts(2);
  texts.Take({.line = 0, .done = true});
  EXPECT_THAT(TextsOf(texts.TakeWhole()), ElementsAre(""));
  EXPECT_THAT(texts.TakeWhole(), IsEmpty()) << "nothing was said of the other one";
}

TEST(WrittenTexts, WhatComesAgainIsNotNew) {
  WrittenTexts texts(1);
  EXPECT_EQ(texts.Take({.text = "abc"}), "abc");
  EXPECT_EQ(texts.Take({.text = "ab"}), "");
  EXPECT_EQ(texts.Take({.offset = 2, .text = "cde", .done = true}), "de");
  EXPECT_THAT(TextsOf(texts.TakeWhole()), ElementsAre("abcde"));
  EXPECT_EQ(texts.Take({.text = "abcde", .done = true}), "");
  EXPECT_THAT(texts.TakeWhole(), IsEmpty());
}

TEST(WrittenTexts, ALineWithAGapIsNotWhole) {
  WrittenTexts texts(1);
  EXPECT_EQ(texts.Take({.offset = 2, .text = "c", .done = true}), "");
  EXPECT_THAT(texts.TakeWhole(), IsEmpty());
  EXPECT_EQ(texts.Take({.text = "ab"}), "abc") << "with what had waited";
  EXPECT_THAT(TextsOf(texts.TakeWhole()), ElementsAre("abc"));
}

TEST(WrittenTexts, LinesThatAJobDoesNotHaveAreIgnored) {
  WrittenTexts texts(1);
  EXPECT_EQ(texts.Take({.line = 1, .text = "a", .done = true}), "");
  EXPECT_EQ(texts.Take({.line = -1, .text = "a", .done = true}), "");
  EXPECT_EQ(texts.Take({.line = 0, .offset = -1, .text = "a", .done = true}), "");
  EXPECT_THAT(texts.TakeWhole(), IsEmpty());
}

// Its end is no number of bytes, and it took the place of the true one.
TEST(WrittenTexts, APieceAtAnImpossibleOffsetIsIgnored) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  WrittenTexts texts(1);
  EXPECT_EQ(texts.Take({.text = "ab", .done = true, .tokens = 2}), "ab");
  EXPECT_EQ(texts.Take({.offset = kMost, .text = "c", .done = true}), "");
  EXPECT_EQ(texts.Take({.offset = kMost - 1, .text = "cd", .done = true}), "");
  const std::vector<WrittenLine> lines = texts.TakeWhole();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "ab");
  EXPECT_EQ(lines[0].tokens, 2);
  WrittenTexts farthest(1);
  EXPECT_EQ(farthest.Take({.offset = kMost - 1, .text = "c", .done = true}), "");
  EXPECT_THAT(farthest.TakeWhole(), IsEmpty()) << "what is before it is missing";
}

TEST(WrittenTexts, ARecordIsHandedOnAsItComesAndByLines) {
  std::vector<std::string> heard;
  const WrittenTextEvents events{
      .on_text =
          [&](int64_t line, const std::string& more) {
            heard.push_back(std::to_string(line) + " " + more);
          },
      .on_line = [&](const WrittenLine& line) { heard.push_back("whole " + line.text); }};
  v1::WrittenRecord record;
  for (const WrittenPiece& piece :
       {WrittenPiece{.line = 1, .text = "b", .done = true}, WrittenPiece{.line = 0, .text = "a"}}) {
    *record.add_texts() = ToProto(piece);
  }
  WrittenTexts texts(2);
  texts.Take(record, events);
  EXPECT_THAT(heard, ElementsAre("1 b", "0 a"));
  EXPECT_EQ(texts.CheckWhole("a").message(),
            "job a succeeded, and the coordinator has the texts of the first 0 of 2 lines only");
  EXPECT_EQ(texts.CheckWhole("a").code(), absl::StatusCode::kDataLoss);
  record.clear_texts();
  *record.add_texts() = ToProto({.line = 0, .offset = 1, .done = true});
  texts.Take(record, events);
  EXPECT_THAT(heard, ElementsAre("1 b", "0 a", "whole a", "whole b"));
  EXPECT_TRUE(texts.CheckWhole("a").ok());
}

// Pieces of random ends in random order, some of them twice.
TEST(WrittenTexts, EveryOrderGivesTheSameLines) {
  const std::vector<std::string> lines = {"the first line", "", "another one", "x"};
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<WrittenPiece> pieces;
    for (size_t line = 0; line < lines.size(); ++line) {
      for (int copy = 0; copy < 2; ++copy) {
        size_t at = 0;
        do {
          const size_t size = std::min<size_t>(lines[line].size() - at, 1 + random() % 5);
          pieces.push_back({.line = static_cast<int64_t>(line),
                            .offset = static_cast<int64_t>(at),
                            .text = lines[line].substr(at, size),
                            .done = at + size == lines[line].size()});
          at += size;
        } while (at < lines[line].size());
      }
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    WrittenTexts texts(static_cast<int64_t>(lines.size()));
    std::vector<std::string> grown(lines.size()), whole;
    for (const WrittenPiece& piece : pieces) {
      grown[static_cast<size_t>(piece.line)] += texts.Take(piece);
      for (const WrittenLine& line : texts.TakeWhole()) whole.push_back(line.text);
    }
    EXPECT_EQ(grown, lines) << "seed " << seed;
    EXPECT_EQ(whole, lines) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stagecoach
