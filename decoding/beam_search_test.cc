// Beam search of toy models beside a naive search, greedy search and exhaustive search.
#include "decoding/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "decoding/toy_model_testing.h"

namespace stagecoach {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

using Text = std::vector<int32_t>;
using Hypothesis = BeamSearch::Hypothesis;
using Next = BeamSearch::Next;

constexpr int32_t kEnd = 0;

// All that a hypothesis is, in so many digits as a double has.
std::string Written(const Hypothesis& hypothesis) {
  return absl::StrFormat("%s %s sum %.17g score %.17g", absl::StrJoin(hypothesis.tokens, " "),
                         hypothesis.ended ? "end" : "...", hypothesis.sum, hypothesis.score);
}

std::vector<std::string> Written(const std::vector<Hypothesis>& hypotheses) {
  std::vector<std::string> lines;
  for (const Hypothesis& hypothesis : hypotheses) lines.push_back(Written(hypothesis));
  return lines;
}

// Each text is what the search's answers say, not what the search remembers.
std::vector<Hypothesis> Search(const BeamOptions& options, const ToyModel& model, int candidates) {
  BeamSearch search(options);
  std::vector<Text> texts(1);
  while (!search.over()) {
    EXPECT_EQ(search.live(), std::ssize(texts));
    std::vector<std::vector<Candidate>> of_live;
    for (const Text& text : texts) of_live.push_back(model.Next(text, candidates));
    std::vector<Text> next;
    for (const auto& [parent, token] : search.Advance(of_live)) {
      next.push_back(texts[parent]);
      next.back().push_back(token);
    }
    texts = std::move(next);
  }
  EXPECT_THAT(texts, IsEmpty());
  return search.Best();
}

std::vector<Hypothesis> Search(const BeamOptions& options, const ToyModel& model) {
  return Search(options, model, 2 * options.beam);
}

double Score(const Hypothesis& hypothesis, double alpha) {
  const double length = static_cast<double>(hypothesis.tokens.size()) + (hypothesis.ended ? 1 : 0);
  return hypothesis.sum / std::pow((5 + length) / 6, alpha);
}

void Rank(std::vector<Hypothesis>& hypotheses, double alpha) {
  for (Hypothesis& hypothesis : hypotheses) hypothesis.score = Score(hypothesis, alpha);
  std::stable_sort(hypotheses.begin(), hypotheses.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

// Sorts every continuation of every live hypothesis, stably, by the sum.
std::vector<Hypothesis> NaiveSearch(const BeamOptions& options, const ToyModel& model) {
  const auto beam = static_cast<size_t>(options.beam);
  std::vector<Hypothesis> live(1), finished;
  for (int64_t step = 0; step < options.most_tokens && !live.empty() && finished.size() < beam;
       ++step) {
    std::vector<Hypothesis> all;
    for (const Hypothesis& before : live) {
      std::vector<Candidate> candidates = model.Next(before.tokens, model.vocabulary);
      if (std::ssize(before.tokens) < options.least_tokens) {
        std::erase_if(candidates, [](const Candidate& one) { return one.token == kEnd; });
      }
      std::sort(candidates.begin(), candidates.end(),
                [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
      for (const Candidate& candidate : candidates) {
        Hypothesis after = before;
        after.tokens.push_back(candidate.token);
        after.sum += candidate.log_probability;
        all.push_back(after);
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.sum > b.sum; });
    all.resize(std::min(all.size(), 2 * beam));
    live.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].tokens.back() != kEnd) {
        live.push_back(all[i]);
      } else if (i < beam) {
        all[i].tokens.pop_back();
        all[i].ended = true;
        finished.push_back(all[i]);
      }
    }
    live.resize(std::min(live.size(), beam));
  }
  if (finished.size() < beam) finished.insert(finished.end(), live.begin(), live.end());
  finished.resize(std::min(finished.size(), beam));
  Rank(finished, options.length_penalty);
  return finished;
}

TEST(BeamSearch, IsTheNaiveSearch) {
  int cut = 0, ended = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    const ToyModel model{
        .seed = seed, .vocabulary = 1 + static_cast<int>(seed % 9), .ties = seed % 2 == 0};
    const BeamOptions options{.beam = 1 + static_cast<int>(seed / 9 % 6),
                              .length_penalty = std::vector{0.0, 0.6, 1.0, 2.0}[seed / 54 % 4],
                              .most_tokens = 1 + seed % 13,
                              .least_tokens = seed % 3,
                              .end = kEnd};
    const std::vector<Hypothesis> best = Search(options, model);
    ASSERT_EQ(Written(best), Written(NaiveSearch(options, model)));
    // More candidates than needed change nothing.
    ASSERT_EQ(Written(Search(options, model, model.vocabulary)), Written(best));
    for (const Hypothesis& hypothesis : best) ++(hypothesis.ended ? ended : cut);
  }
  EXPECT_GT(cut, 500);
  EXPECT_GT(ended, 500);
}

// Every text up to most_tokens, with its end or cut.
void Enumerate(const ToyModel& model, int64_t most_tokens, const Hypothesis& before,
               std::vector<Hypothesis>& all) {
  if (std::ssize(before.tokens) == most_tokens) {
    all.push_back(before);
    return;
  }
  for (const Candidate& candidate : model.Next(before.tokens, model.vocabulary)) {
    Hypothesis after = before;
    after.sum += candidate.log_probability;
    after.ended = candidate.token == kEnd;
    if (after.ended) {
      all.push_back(after);
    } else {
      after.tokens.push_back(candidate.token);
      Enumerate(model, most_tokens, after, all);
    }
  }
}

TEST(BeamSearch, IsExhaustiveIfTheBeamHoldsEverything) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const ToyModel model{.seed = seed, .vocabulary = 3};
    const int64_t most_tokens = 1 + seed % 5;
    std::vector<Hypothesis> all;
    Enumerate(model, most_tokens, Hypothesis(), all);
    // Ends of every length, and the cut texts: 2^n - 1 and 2^n.
    ASSERT_EQ(std::ssize(all), (2 << most_tokens) - 1);
    for (const double alpha : {0.0, 0.6, 1.0}) {
      Rank(all, alpha);
      const std::vector<Hypothesis> best = Search(
          {.beam = 64, .length_penalty = alpha, .most_tokens = most_tokens, .end = kEnd}, model);
      ASSERT_EQ(Written(best), Written(all));
    }
  }
}

TEST(BeamSearch, ThatWantsOnlyTheBestEndsEarlierWithTheSame) {
  int64_t steps = 0, fewer = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const ToyModel model{.seed = seed, .vocabulary = 5, .ties = seed % 4 == 3};
    BeamOptions options{.beam = 1 + static_cast<int>(seed % 5),
                        .length_penalty = -0.5 + 0.5 * (seed % 6),
                        .most_tokens = 1 + seed % 9,
                        .end = kEnd};
    const std::vector<Hypothesis> all = Search(options, model);
    options.only_best = true;
    BeamSearch search(options), whole({.beam = options.beam,
                                       .length_penalty = options.length_penalty,
                                       .most_tokens = options.most_tokens,
                                       .end = kEnd});
    EXPECT_EQ(Written(Search(options, model).front()), Written(all.front())) << "seed " << seed;
    const auto count = [&model](BeamSearch& of) {
      std::vector<Text> texts(1);
      int64_t taken = 0;
      for (; !of.over(); ++taken) {
        std::vector<std::vector<Candidate>> of_live;
        for (const Text& text : texts) of_live.push_back(model.Next(text, model.vocabulary));
        std::vector<Text> next;
        for (const auto& [parent, token] : of.Advance(of_live)) {
          next.push_back(texts[parent]);
          next.back().push_back(token);
        }
        texts = std::move(next);
      }
      return taken;
    };
    steps += count(whole);
    fewer += count(search);
  }
  EXPECT_LT(fewer, steps);
}

TEST(BeamSearch, OfOneIsGreedy) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const ToyModel model{.seed = seed, .vocabulary = 6, .ties = seed % 2 == 0};
    Hypothesis greedy;
    while (!greedy.ended && greedy.tokens.size() < 20) {
      const Candidate first = model.Next(greedy.tokens, 1).front();
      greedy.sum += first.log_probability;
      greedy.ended = first.token == kEnd;
      if (!greedy.ended) greedy.tokens.push_back(first.token);
    }
    greedy.score = Score(greedy, 0.6);
    EXPECT_THAT(Written(Search({.beam = 1, .most_tokens = 20, .end = kEnd}, model)),
                ElementsAre(Written(greedy)));
  }
}

TEST(BeamSearch, BeginsWithOneHypothesisAndContinuesTheBest) {
  BeamSearch search({.beam = 2, .most_tokens = 9, .end = kEnd});
  EXPECT_EQ(search.live(), 1);
  EXPECT_FALSE(search.over());
  EXPECT_THAT(search.Best(), IsEmpty());
  EXPECT_THAT(search.Advance({{{{5, -1}, {6, -2}, {7, -3}, {8, -4}}}}),
              ElementsAre(Next{0, 5}, Next{0, 6}));
  // The best sums are -2.25 of the second one and -2.5 of the first one.
  EXPECT_THAT(
      search.Advance(std::vector<std::vector<Candidate>>{{{5, -3}, {6, -1.5}, {7, -4}, {8, -5}},
                                                         {{5, -0.25f}, {6, -4}, {7, -5}, {8, -6}}}),
      ElementsAre(Next{1, 5}, Next{0, 6}));
  EXPECT_EQ(search.live(), 2);
}

TEST(BeamSearch, OfEqualSumsContinuesTheEarlierParentThenTheLowerToken) {
  BeamSearch search({.beam = 3, .most_tokens = 9, .end = kEnd});
  EXPECT_THAT(search.Advance({{{{7, -1}, {6, -1}, {5, -1}, {8, -1}}}}),
              ElementsAre(Next{0, 5}, Next{0, 6}, Next{0, 7}));
  EXPECT_THAT(search.Advance(std::vector<std::vector<Candidate>>{
                  {{9, -2}, {8, -2}}, {{3, -2}, {4, -1}}, {{1, -2}, {2, -2}}}),
              ElementsAre(Next{1, 4}, Next{0, 8}, Next{0, 9}));
}

TEST(BeamSearch, DropsEndsBehindTheFirstBeamAndFillsTheirPlaces) {
  BeamSearch search({.beam = 2, .length_penalty = 0, .most_tokens = 9, .end = kEnd});
  // The end is third: not finished, though it is among the four.
  EXPECT_THAT(search.Advance({{{{5, -1}, {6, -2}, {kEnd, -3}, {7, -4}}}}),
              ElementsAre(Next{0, 5}, Next{0, 6}));
  EXPECT_THAT(search.Best(), IsEmpty());
  // The end of the first one is second in all: finished, and its place goes to the next.
  EXPECT_THAT(
      search.Advance(std::vector<std::vector<Candidate>>{
          {{8, -1}, {kEnd, -1.5}, {9, -7}, {7, -8}}, {{8, -2}, {kEnd, -2.5}, {9, -7}, {7, -8}}}),
      ElementsAre(Next{0, 8}, Next{1, 8}));
  EXPECT_THAT(Written(search.Best()), ElementsAre("5 end sum -2.5 score -2.5"));
}

TEST(BeamSearch, IsOverWhenAsManyAreFinishedThoughALiveOneIsBetter) {
  BeamSearch search({.beam = 2, .length_penalty = 0, .most_tokens = 9, .end = kEnd});
  EXPECT_THAT(search.Advance({{{{5, -1}, {kEnd, -2}, {6, -3}, {7, -4}}}}),
              ElementsAre(Next{0, 5}, Next{0, 6}));
  EXPECT_THAT(search.Advance(std::vector<std::vector<Candidate>>{{{5, -0.5f}, {kEnd, -3}},
                                                                 {{5, -5}, {kEnd, -6}}}),
              IsEmpty());
  EXPECT_TRUE(search.over());
  EXPECT_EQ(search.live(), 0);
  EXPECT_THAT(Written(search.Best()), ElementsAre(" end sum -2 score -2", "5 end sum -4 score -4"));
}

TEST(BeamSearch, KeepsNoMoreThanTheBeamIfSeveralEndAtOnce) {
  BeamSearch search({.beam = 2, .length_penalty = 0, .most_tokens = 9, .end = kEnd});
  search.Advance({{{{5, -2}, {kEnd, -1}, {6, -3}, {7, -4}}}});
  EXPECT_THAT(search.Advance(std::vector<std::vector<Candidate>>{{{kEnd, -1}, {5, -9}},
                                                                 {{kEnd, -0.5f}, {6, -9}}}),
              IsEmpty());
  EXPECT_THAT(Written(search.Best()), ElementsAre(" end sum -1 score -1", "5 end sum -3 score -3"));
}

TEST(BeamSearch, PrefersLongerTextsAsAlphaGrows) {
  const auto best = [](double alpha) {
    BeamSearch search({.beam = 2, .length_penalty = alpha, .most_tokens = 9, .end = kEnd});
    search.Advance({{{{kEnd, -2}, {5, -1}, {6, -8}}}});
    search.Advance(std::vector<std::vector<Candidate>>{{{5, -0.5f}, {6, -9}}, {{5, -9}, {6, -9}}});
    search.Advance(
        std::vector<std::vector<Candidate>>{{{kEnd, -0.625f}, {6, -9}}, {{5, -9}, {6, -9}}});
    return search.Best();
  };
  // Of lengths 1 and 3: sums -2 and -2.125, divided by (6 / 6)^alpha and (8 / 6)^alpha.
  EXPECT_THAT(Written(best(0)),
              ElementsAre(" end sum -2 score -2", "5 5 end sum -2.125 score -2.125"));
  EXPECT_THAT(Written(best(1)),
              ElementsAre("5 5 end sum -2.125 score -1.59375", " end sum -2 score -2"));
  EXPECT_THAT(best(0.6).front().score, DoubleNear(-2.125 / std::pow(4.0 / 3, 0.6), 1e-12));
}

// Of a half-trained translator, the empty text was the likeliest for a sentence in twenty.
TEST(BeamSearch, AnEndBeforeTheLeastIsNoContinuation) {
  const std::vector<std::vector<Candidate>> likely_end = {{{kEnd, -1}, {5, -2}, {6, -3}}};
  BeamSearch may({.beam = 1, .length_penalty = 0, .most_tokens = 9, .end = kEnd});
  EXPECT_THAT(may.Advance(likely_end), IsEmpty());
  BeamSearch must(
      {.beam = 1, .length_penalty = 0, .most_tokens = 9, .least_tokens = 1, .end = kEnd});
  EXPECT_THAT(must.Advance(likely_end), ElementsAre(Next{0, 5}));
  EXPECT_THAT(must.Advance(likely_end), IsEmpty());
  EXPECT_THAT(Written(must.Best()), ElementsAre("5 end sum -3 score -3"));
}

TEST(BeamSearch, OfOneTokenEndsAfterOneStep) {
  BeamSearch search({.beam = 3, .length_penalty = 1, .most_tokens = 1, .end = kEnd});
  EXPECT_THAT(search.Advance({{{{5, -1}, {kEnd, -1.5}, {6, -3}, {7, -4}, {8, -5}, {9, -6}}}}),
              IsEmpty());
  EXPECT_TRUE(search.over());
  // Two live ones fill the places that the end leaves. All have one token, the end or another.
  EXPECT_THAT(
      Written(search.Best()),
      ElementsAre("5 ... sum -1 score -1", " end sum -1.5 score -1.5", "6 ... sum -3 score -3"));
}

TEST(BeamSearch, IsOverWithoutALiveHypothesis) {
  BeamSearch search({.beam = 4, .length_penalty = 0, .most_tokens = 9, .end = kEnd});
  EXPECT_THAT(search.Advance({{{{kEnd, -1}}}}), IsEmpty());
  EXPECT_TRUE(search.over());
  EXPECT_THAT(Written(search.Best()), ElementsAre(" end sum -1 score -1"));
}

TEST(BeamSearch, LetsALargeBeamGrowToItsSize) {
  BeamSearch search({.beam = 5, .most_tokens = 9, .end = kEnd});
  const std::vector<Candidate> all = {{kEnd, -5}, {1, -1}, {2, -2}};
  EXPECT_EQ(search.Advance(std::vector(1, all)).size(), 2u);
  EXPECT_EQ(search.Advance(std::vector(2, all)).size(), 4u);
  EXPECT_EQ(search.Advance(std::vector(4, all)).size(), 5u);
}

TEST(BeamSearch, DiesOfCandidatesForOthersThanTheLive) {
  BeamSearch search({.beam = 2, .most_tokens = 1, .end = kEnd});
  const std::vector<Candidate> all = {{kEnd, -5}, {1, -1}};
  EXPECT_DEATH(search.Advance(std::vector(2, all)), "2 lists of candidates for 1 live hypotheses");
  search.Advance(std::vector(1, all));
  EXPECT_DEATH(search.Advance(std::vector(0, all)), "0 lists of candidates for 0 live hypotheses");
  EXPECT_DEATH(BeamSearch({.beam = 0}), "beam");
  EXPECT_DEATH(BeamSearch({.most_tokens = 0}), "most_tokens");
}

}  // namespace
}  // namespace stagecoach
