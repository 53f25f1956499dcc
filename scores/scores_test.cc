// BLEU and chrF2 of corpora whose scores sacreBLEU 2.6.0 printed, and sums in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scores/bleu.h"
#include "scores/chrf.h"
#include "scores/sacrebleu_text.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

struct Segment {
  std::string hypothesis;
  std::vector<std::string> references;
};
using Corpus = std::vector<Segment>;

std::vector<std::string_view> Views(const Segment& segment) {
  return {segment.references.begin(), segment.references.end()};
}

BleuCounts BleuOf(const Corpus& corpus, const BleuOptions& options = {}) {
  BleuCounts sum;
  for (const Segment& segment : corpus) {
    sum += CountBleu(segment.hypothesis, Views(segment), options);
  }
  return sum;
}

ChrfCounts ChrfOf(const Corpus& corpus) {
  ChrfCounts sum;
  for (const Segment& segment : corpus) {
    sum += CountChrf(segment.hypothesis, Views(segment));
  }
  return sum;
}

// With the score in so many digits as a double has.
std::string BleuText(const Corpus& corpus, const BleuOptions& options = {}) {
  return BleuLine(ScoreBleu(BleuOf(corpus, options)),
                  BleuSignature(options, std::ssize(corpus.front().references)), 12);
}
std::string ChrfText(const Corpus& corpus) {
  return ChrfLine(ScoreChrf(ChrfOf(corpus)),
                  ChrfSignature(std::ssize(corpus.front().references)), 12);
}

Corpus Dogs(size_t references) {
  Corpus corpus = {
      {"The dog bit the man.", {"The dog bit the man.", "The dog had bit the man."}},
      {"It wasn't surprising.", {"It was not unexpected.", "No one was surprised."}},
      {"The man had just bitten him.", {"The man bit him first.", "The man had bitten the dog."}}};
  for (Segment& segment : corpus) segment.references.resize(references);
  return corpus;
}

TEST(Bleu, IsSacrebleus) {
  EXPECT_EQ(BleuText(Dogs(1)),
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 45.067506321061 "
            "70.6/42.9/36.4/37.5 (BP = 1.000 ratio = 1.000 hyp_len = 17 ref_len = 17)");
  EXPECT_EQ(BleuText(Dogs(2)),
            "BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 48.530827009930 "
            "82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)");
  EXPECT_EQ(BleuText(Dogs(2), {.tokenizer = BleuTokenizer::kNone}),
            "BLEU|nrefs:2|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0 = 49.191956600473 "
            "71.4/54.5/50.0/40.0 (BP = 0.931 ratio = 0.933 hyp_len = 14 ref_len = 15)");
}

TEST(Bleu, DoublesTheSmoothingForEachOrderWithoutAMatch) {
  const BleuScore score = ScoreBleu(BleuOf({{"a b c d e", {"a b x d y z"}}}));
  EXPECT_THAT(score.counts.matches, ElementsAre(3, 1, 0, 0));
  EXPECT_THAT(score.precisions, ElementsAre(60, 25, 100 / 6.0, 12.5));
  EXPECT_DOUBLE_EQ(score.brevity_penalty, 0.8187307530779819);
  EXPECT_DOUBLE_EQ(score.score, 19.3576934939088);
}

TEST(Bleu, IsNoneWithoutAMatchOrWithoutAnOrder) {
  EXPECT_EQ(ScoreBleu(BleuOf({{"x", {"a b c d"}}})).score, 0);
  EXPECT_THAT(ScoreBleu(BleuOf({{"x", {"a b c d"}}})).precisions, ElementsAre(0, 0, 0, 0));
  // Three words have no n-gram of four.
  const BleuScore three = ScoreBleu(BleuOf({{"a b c", {"a b c"}}}));
  EXPECT_EQ(three.score, 0);
  EXPECT_THAT(three.precisions, ElementsAre(100, 100, 100, 0));
}

TEST(Bleu, OfNothing) {
  EXPECT_EQ(ScoreBleu(BleuOf({{"", {"a b c d"}}})).brevity_penalty, 0);
  EXPECT_EQ(ScoreBleu(BleuOf({{"", {""}}})).brevity_penalty, 1);
  EXPECT_EQ(ScoreBleu(BleuOf({{"a b c d", {""}}})).score, 0);
  EXPECT_THAT(BleuText({{"a b c d", {""}}}),
              testing::EndsWith("= 0.000000000000 0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 "
                                "hyp_len = 4 ref_len = 0)"));
}

TEST(Bleu, ClipsByTheGreatestCountAndTakesTheClosestReference) {
  const BleuScore score = ScoreBleu(BleuOf(
      {{"the the the the the the the", {"the cat is on the mat", "there is a cat on the mat"}}}));
  EXPECT_THAT(score.counts.matches, ElementsAre(2, 0, 0, 0));
  EXPECT_EQ(score.counts.reference_length, 7);
  EXPECT_DOUBLE_EQ(score.score, 7.809849842300637);
  // As far from both: the shorter one, in any order.
  EXPECT_EQ(BleuOf({{"a b c d e f", {"a b c d", "a b c d e f g h"}}}).reference_length, 4);
  EXPECT_EQ(BleuOf({{"a b c d e f", {"a b c d e f g h", "a b c d"}}}).reference_length, 4);
}

TEST(Chrf, IsSacrebleus) {
  EXPECT_EQ(ChrfText(Dogs(1)),
            "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 50.043063606582");
  EXPECT_EQ(ChrfText(Dogs(2)),
            "chrF2|nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 59.727517826848");
}

TEST(Chrf, CountsCodePointsWithoutWhiteSpace) {
  EXPECT_DOUBLE_EQ(ScoreChrf(ChrfOf({{"👍🏽 cafe\u0301 naïve", {"👍🏽 café naïve"}}})),
                   51.58393741374117);
  EXPECT_EQ(ScoreChrf(ChrfOf({{"a b\u3000c", {"abc"}}})), 100);
  EXPECT_THAT(ChrfOf({{"a b\u3000c", {"äöü"}}}).hypothesis, ElementsAre(3, 2, 1, 0, 0, 0));
}

TEST(Chrf, CountsNoOrderThatTheReferenceLacks) {
  EXPECT_THAT(ChrfOf({{"abcdef", {"abc"}}}).hypothesis, ElementsAre(6, 5, 4, 0, 0, 0));
  EXPECT_EQ(ScoreChrf(ChrfOf({{"", {"abc"}}})), 0);
  EXPECT_EQ(ScoreChrf(ChrfOf({{"", {""}}})), 0);
  EXPECT_EQ(ScoreChrf(ChrfOf({{"abc", {""}}})), 0);
}

// Of two that score 0 the first one counts, even if the other one is as empty as the hypothesis.
TEST(Chrf, OfAnEmptyHypothesisCountsTheFirstReference) {
  EXPECT_THAT(ChrfOf({{"", {"abc", ""}}}).reference, ElementsAre(3, 2, 1, 0, 0, 0));
  EXPECT_THAT(ChrfOf({{"", {"", "abc"}}}).reference, ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Chrf, TakesTheReferenceWithTheBestScore) {
  EXPECT_DOUBLE_EQ(ScoreChrf(ChrfOf({{"abc def", {"abcdef xyz", "def abc"}}})), 55.77101053281037);
  // The first of two as good ones.
  EXPECT_THAT(ChrfOf({{"ab", {"xyz", "uvwxyz"}}}).reference, ElementsAre(3, 2, 1, 0, 0, 0));
}

// Sentences of few words, so that many n-grams match.
Corpus RandomCorpus(uint32_t seed, size_t references) {
  static const auto* const words = new std::vector<std::string>{
      "the",  "cat",   "sat", "on", "a",      "mat.", "3.5",   "Ein",     "Hund,",
      "über", "&amp;", "É",   "💥",  "\u3000", "x-",   "10-20", "&quot;Z", "<skipped>"};
  std::mt19937 random(seed);
  const auto sentence = [&random] {
    std::string text;
    for (uint32_t left = random() % 12; left > 0; --left) {
      absl::StrAppend(&text, (*words)[random() % words->size()], random() % 5 == 0 ? "" : " ");
    }
    return text;
  };
  Corpus corpus(1 + random() % 30);
  for (Segment& segment : corpus) {
    segment.hypothesis = sentence();
    for (size_t i = 0; i < references; ++i) segment.references.push_back(sentence());
  }
  return corpus;
}

TEST(Scores, DependNeitherOnTheOrderOfSentencesNorOnTheirParts) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Corpus corpus = RandomCorpus(seed, 1 + seed % 3);
    const BleuCounts bleu = BleuOf(corpus);
    const ChrfCounts chrf = ChrfOf(corpus);
    const auto cut = corpus.begin() + seed % std::ssize(corpus);
    BleuCounts bleu_parts = BleuOf({cut, corpus.end()});
    bleu_parts += BleuOf({corpus.begin(), cut});
    ChrfCounts chrf_parts = ChrfOf({cut, corpus.end()});
    chrf_parts += ChrfOf({corpus.begin(), cut});
    EXPECT_EQ(bleu_parts, bleu) << seed;
    EXPECT_EQ(chrf_parts, chrf) << seed;
    std::mt19937 random(seed);
    std::shuffle(corpus.begin(), corpus.end(), random);
    EXPECT_EQ(BleuText(corpus), BleuText(RandomCorpus(seed, 1 + seed % 3))) << seed;
    EXPECT_EQ(ChrfOf(corpus), chrf) << seed;
  }
}

TEST(Scores, OfAReferenceItselfAreWhole) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Corpus corpus = RandomCorpus(seed, 2);
    for (Segment& segment : corpus) segment.hypothesis = segment.references.front();
    corpus.push_back({"one two three four", {"one two three four", "five"}});
    EXPECT_NEAR(ScoreBleu(BleuOf(corpus)).score, 100, 1e-9) << seed;
    EXPECT_DOUBLE_EQ(ScoreChrf(ChrfOf(corpus)), 100) << seed;
  }
}

TEST(ScoresDeathTest, OfNoReferenceAreABug) {
  EXPECT_DEATH(CountBleu("a", {}, {}), "no reference");
  EXPECT_DEATH(CountChrf("a", {}), "no reference");
}

}  // namespace
}  // namespace stagecoach
