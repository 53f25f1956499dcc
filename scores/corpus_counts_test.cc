#include "scores/corpus_counts.h"

#include <utility>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

constexpr std::pair<const char*, const char*> kSegments[] = {
    {"the cat sat on the mat", "the cat is on the mat"},
    {"ein Hund rennt .", "ein Hund läuft ."},
    {"", "nothing was said"},
};

TEST(CorpusCounts, PartsInAnyOrderGiveTheScoresOfTheCorpus) {
  BleuCounts bleu;
  ChrfCounts chrf;
  for (const auto& [hypothesis, reference] : kSegments) {
    const std::string_view references[] = {reference};
    bleu += CountBleu(hypothesis, references, {});
    chrf += CountChrf(hypothesis, references);
  }
  CorpusCounts forwards, backwards;
  for (int i = 0; i < 3; ++i) {
    forwards += CountSegment(kSegments[i].first, kSegments[i].second);
    backwards += CountSegment(kSegments[2 - i].first, kSegments[2 - i].second);
  }
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(forwards.bleu, bleu);
  EXPECT_EQ(forwards.chrf, chrf);
  EXPECT_GT(ScoreBleu(forwards.bleu).score, 0);
}

TEST(CorpusCounts, NumbersOfAMessageGiveThemBack) {
  CorpusCounts counts = CountSegment(kSegments[0].first, kSegments[0].second);
  const std::vector<int64_t> numbers = counts.Numbers();
  ASSERT_EQ(numbers.size(), kCorpusNumbers);
  EXPECT_EQ(CorpusCounts::FromNumbers(numbers), counts);
  EXPECT_EQ(CorpusCounts::FromNumbers(std::span(numbers).first(kCorpusNumbers - 1)), std::nullopt);
  EXPECT_EQ(CorpusCounts::FromNumbers({}), std::nullopt);
}

}  // namespace
}  // namespace stagecoach
