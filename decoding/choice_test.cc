// Candidates of a row of logits, beside a plain form that sorts the whole row.
#include "decoding/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/testing/status_is.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Row = std::vector<float>;
using Ids = std::vector<int32_t>;

constexpr double kAlmostOne = 1 - 0x1p-53;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Candidate> MustLikeliest(const Row& logits, int count, const Ids& forbidden = {}) {
  const auto candidates = Likeliest(logits, count, forbidden);
  EXPECT_TRUE(candidates.ok()) << candidates.status();
  return candidates.value_or(std::vector<Candidate>());
}

Ids TokensOf(const std::vector<Candidate>& candidates) {
  Ids tokens;
  for (const Candidate& candidate : candidates) tokens.push_back(candidate.token);
  return tokens;
}

int32_t SampledToken(const Row& logits, const ChoiceOptions& options, double uniform,
                     const Ids& forbidden = {}) {
  const auto candidate = Sample(logits, options, uniform, forbidden);
  EXPECT_TRUE(candidate.ok()) << candidate.status();
  return candidate.ok() ? candidate->token : -1;
}

// Logits with these probabilities, but for rounding.
Row WithProbabilities(const std::vector<double>& probabilities) {
  Row logits;
  for (const double probability : probabilities) {
    logits.push_back(static_cast<float>(std::log(probability) + 3));
  }
  return logits;
}

Ids PlainOrder(const Row& logits, const Ids& forbidden) {
  Ids tokens;
  for (int32_t token = 0; token < std::ssize(logits); ++token) {
    if (std::find(forbidden.begin(), forbidden.end(), token) == forbidden.end()) {
      tokens.push_back(token);
    }
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  return tokens;
}

double PlainLogProbability(const Row& logits, int32_t token) {
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - logits[token]);
  return static_cast<double>(-std::log(sum));
}

int32_t PlainSample(const Row& logits, const ChoiceOptions& options, double uniform,
                    const Ids& forbidden) {
  Ids tokens = PlainOrder(logits, forbidden);
  if (options.temperature == 0) return tokens[0];
  if (options.top_k > 0 && options.top_k < std::ssize(tokens)) tokens.resize(options.top_k);
  const auto probabilities = [&] {
    std::vector<long double> shares;
    for (const int32_t token : tokens) {
      shares.push_back(std::exp((static_cast<long double>(logits[token]) - logits[tokens[0]]) /
                                options.temperature));
    }
    const long double sum = std::accumulate(shares.begin(), shares.end(), 0.0L);
    for (long double& share : shares) share /= sum;
    return shares;
  };
  if (options.top_p < 1) {
    const std::vector<long double> shares = probabilities();
    size_t kept = 1;
    for (long double sum = shares[0]; sum < options.top_p; sum += shares[kept++]) continue;
    tokens.resize(kept);
  }
  const std::vector<long double> shares = probabilities();
  long double reached = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    reached += shares[i];
    if (reached > uniform) return tokens[i];
  }
  return tokens.back();
}

Row RandomRow(std::mt19937& random) {
  Row logits(1 + random() % (random() % 8 == 0 ? 3000 : 30));
  const bool ties = random() % 2 == 0;
  for (float& logit : logits) {
    logit = ties ? static_cast<float>(random() % 5) : static_cast<float>(random()) * 0x1p-29f - 4;
  }
  return logits;
}

// At least one token of the row is left.
Ids RandomForbidden(std::mt19937& random, int64_t vocabulary) {
  Ids forbidden;
  for (int64_t left = std::min<int64_t>(random() % 4, vocabulary - 1); left > 0; --left) {
    forbidden.push_back(static_cast<int32_t>(random() % vocabulary));
  }
  return forbidden;
}

TEST(Likeliest, AreTheFirstOfTheSortedRow) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    SCOPED_TRACE(trial);
    const Row logits = RandomRow(random);
    const Ids forbidden = RandomForbidden(random, std::ssize(logits));
    const int count = 1 + static_cast<int>(random() % 100);
    Ids expected = PlainOrder(logits, forbidden);
    expected.resize(std::min<size_t>(expected.size(), count));
    const std::vector<Candidate> candidates = MustLikeliest(logits, count, forbidden);
    ASSERT_EQ(TokensOf(candidates), expected);
    for (const Candidate& candidate : candidates) {
      ASSERT_NEAR(candidate.log_probability, PlainLogProbability(logits, candidate.token), 2e-6);
    }
  }
}

TEST(Likeliest, OfEqualLogitsAreTheLowestTokens) {
  EXPECT_EQ(TokensOf(MustLikeliest({1, 2, 1, 2, 1, 2}, 4)), Ids({1, 3, 5, 0}));
  EXPECT_EQ(TokensOf(MustLikeliest({0.0f, -0.0f, 0.0f}, 2)), Ids({0, 1}));
}

TEST(Likeliest, AreAllThatAreAllowedIfThereAreFewer) {
  EXPECT_EQ(TokensOf(MustLikeliest({1, 3, 2}, 10)), Ids({1, 2, 0}));
  EXPECT_EQ(TokensOf(MustLikeliest({1, 3, 2}, 10, {1, 7, -1})), Ids({2, 0}));
  EXPECT_THAT(MustLikeliest({1, 3}, 1, {0, 1}), IsEmpty());
}

TEST(Likeliest, CountForbiddenTokensInTheSoftmax) {
  const std::vector<Candidate> candidates =
      MustLikeliest(WithProbabilities({0.5, 0.25, 0.25}), 1, {0});
  ASSERT_EQ(TokensOf(candidates), Ids({1}));
  EXPECT_FLOAT_EQ(candidates[0].log_probability, std::log(0.25));
}

TEST(Choice, NamesTheFirstLogitThatIsNotFinite) {
  const auto refused = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, message);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Likeliest(Row{0, 1, nan, kInfinity}, 1, {}).status(),
              refused("the logit of token 2 is nan; must be finite"));
  EXPECT_THAT(Likeliest(Row{0, -kInfinity}, 1, Ids{1}).status(),
              refused("the logit of token 1 is -inf; must be finite"));
  EXPECT_THAT(Sample(Row{kInfinity}, {}, 0, {}).status(),
              refused("the logit of token 0 is inf; must be finite"));
}

TEST(Sample, IsThatOfTheSortedRow) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 5000; ++trial) {
    SCOPED_TRACE(trial);
    const Row logits = RandomRow(random);
    const Ids forbidden = RandomForbidden(random, std::ssize(logits));
    const ChoiceOptions options{
        .sample = true,
        .temperature = std::vector{0.0, 0.1, 0.7, 1.0, 3.0}[random() % 5],
        .top_k = std::vector<int64_t>{0, 1, 5, 100, 100000}[random() % 5],
        // No multiples of the shares of a few equal tokens, where rounding decides.
        .top_p = std::vector{0.0, 1e-9, 0.3007, 0.9003, 0.9907, 1.0}[random() % 6]};
    const double uniform = random() * 0x1p-32;
    const auto sampled = Sample(logits, options, uniform, forbidden);
    ASSERT_TRUE(sampled.ok()) << sampled.status();
    ASSERT_EQ(sampled->token, PlainSample(logits, options, uniform, forbidden));
    ASSERT_NEAR(sampled->log_probability, PlainLogProbability(logits, sampled->token), 2e-6);
  }
}

// Tokens of 10,000 evenly spaced draws.
std::map<int32_t, int> Counts(const Row& logits, const ChoiceOptions& options) {
  std::map<int32_t, int> counts;
  for (int i = 0; i < 10000; ++i) ++counts[SampledToken(logits, options, (i + 0.5) / 10000)];
  return counts;
}

TEST(Sample, DrawsEachTokenAsOftenAsItsProbability) {
  const Row logits = WithProbabilities({0.1, 0.4, 0.2, 0.3});
  EXPECT_EQ(Counts(logits, {}),
            (std::map<int32_t, int>{{1, 4000}, {3, 3000}, {2, 2000}, {0, 1000}}));
  // The temperature halves the logits: square roots, 0.3162 + 0.6325 + 0.4472 + 0.5477 = 1.9436.
  EXPECT_EQ(Counts(logits, {.temperature = 2}),
            (std::map<int32_t, int>{{1, 3254}, {3, 2818}, {2, 2301}, {0, 1627}}));
}

TEST(Sample, DividesTheUniformNumberFromTheLikeliestOn) {
  const Row logits = WithProbabilities({0.1, 0.4, 0.2, 0.3});
  EXPECT_EQ(SampledToken(logits, {}, 0), 1);
  EXPECT_EQ(SampledToken(logits, {}, 0.399), 1);
  EXPECT_EQ(SampledToken(logits, {}, 0.401), 3);
  EXPECT_EQ(SampledToken(logits, {}, kAlmostOne), 0);
  // Equal ones: the lower token first.
  EXPECT_EQ(SampledToken({1, 1}, {}, 0.49), 0);
  EXPECT_EQ(SampledToken({1, 1}, {}, 0.5), 1);
}

TEST(Sample, KeepsTheFewestWithTheShareAskedFor) {
  const Row logits = WithProbabilities({0.1, 0.4, 0.2, 0.3});
  const auto last = [&](double top_p) {
    return SampledToken(logits, {.top_p = top_p}, kAlmostOne);
  };
  EXPECT_EQ(last(0), 1);
  EXPECT_EQ(last(1e-300), 1);
  EXPECT_EQ(last(0.39), 1);
  EXPECT_EQ(last(0.41), 3);
  EXPECT_EQ(last(0.69), 3);
  EXPECT_EQ(last(0.71), 2);
  EXPECT_EQ(last(0.91), 0);
  EXPECT_EQ(last(1), 0);
}

TEST(Sample, KeepsAsManyAsAskedFor) {
  const Row logits = WithProbabilities({0.1, 0.4, 0.2, 0.3});
  EXPECT_EQ(SampledToken(logits, {.top_k = 1}, kAlmostOne), 1);
  EXPECT_EQ(SampledToken(logits, {.top_k = 3}, kAlmostOne), 2);
  EXPECT_EQ(SampledToken(logits, {.top_k = 9}, kAlmostOne), 0);
  // Exactly as many, even of equal ones.
  EXPECT_EQ(SampledToken({1, 1, 1}, {.top_k = 2}, kAlmostOne), 1);
}

TEST(Sample, AppliesTemperatureThenTopKThenTopP) {
  const Row logits = WithProbabilities({0.4, 0.3, 0.2, 0.1});
  // Of the two likeliest the first has 4/7. Of all it has 0.4, less than 0.5.
  EXPECT_EQ(SampledToken(logits, {.top_p = 0.5}, kAlmostOne), 1);
  EXPECT_EQ(SampledToken(logits, {.top_k = 2, .top_p = 0.5}, kAlmostOne), 0);
  // At half the temperature the first has 16/30.
  EXPECT_EQ(SampledToken(logits, {.temperature = 0.5, .top_p = 0.5}, kAlmostOne), 0);
}

TEST(Sample, AtTemperatureZeroIsTheLikeliest) {
  EXPECT_EQ(SampledToken({1, 3, 3, 2}, {.temperature = 0}, kAlmostOne), 1);
  EXPECT_EQ(SampledToken({1, 3, 3, 2}, {.temperature = 0}, kAlmostOne, {1}), 2);
  // Close to zero equal logits stay equal.
  EXPECT_EQ(SampledToken({1, 3, 3, 2}, {.temperature = 5e-324}, kAlmostOne), 2);
}

TEST(Sample, IsNotDisturbedByAForbiddenTokenThatIsFarLikelier) {
  EXPECT_EQ(SampledToken({1e6f, 1, 1}, {.temperature = 0.01}, 0.25, {0}), 1);
  EXPECT_EQ(SampledToken({1e6f, 1, 1}, {.temperature = 0.01}, 0.75, {0}), 2);
}

TEST(Sample, NeverTakesATokenWithoutProbability) {
  EXPECT_EQ(SampledToken({0, -2000, -2000}, {}, kAlmostOne), 0);
}

TEST(Choose, TakesTheLikeliestOrOneSampledToken) {
  const Row logits = WithProbabilities({0.4, 0.3, 0.2, 0.1});
  const auto tokens = [&](const ChoiceOptions& options) {
    const auto chosen = Choose(logits, options, kAlmostOne, Ids{3});
    return chosen.ok() ? TokensOf(*chosen) : Ids();
  };
  EXPECT_THAT(tokens({}), ElementsAre(0));
  EXPECT_THAT(tokens({.candidates = 2, .top_k = 1}), ElementsAre(0, 1));
  EXPECT_THAT(tokens({.candidates = 2, .sample = true}), ElementsAre(2));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(Choose(Row{nan}, {.sample = true}, 0, {}).ok());
}

TEST(Choice, DiesOfOptionsThatNoCallerMayGive) {
  const Row logits = {1, 2};
  EXPECT_DEATH(static_cast<void>(Likeliest(logits, 0, {})), "0 of 2");
  EXPECT_DEATH(static_cast<void>(Likeliest({}, 1, {})), "1 of 0");
  EXPECT_DEATH(static_cast<void>(Sample(logits, {}, 0, Ids{0, 1})), "every token is forbidden");
  EXPECT_DEATH(static_cast<void>(Sample(logits, {}, 1, {})), "uniform");
  EXPECT_DEATH(static_cast<void>(Sample(logits, {.temperature = -1}, 0, {})), "temperature");
  EXPECT_DEATH(static_cast<void>(Sample(logits, {.top_k = -1}, 0, {})), "top_k");
  EXPECT_DEATH(static_cast<void>(Sample(logits, {.top_p = 1.5}, 0, {})), "top_p");
}

}  // namespace
}  // namespace stagecoach
