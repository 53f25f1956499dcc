#include "scores/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "scores/code_points.h"
#include "scores/ngrams.h"
#include "scores/tokenize_13a.h"

namespace stagecoach {
namespace {

TextUnits Words(std::string_view text, const BleuOptions& options) {
  const std::string_view line = WithoutTrailingSpace(text);
  return WordUnits(options.tokenizer == BleuTokenizer::k13a ? Tokenize13a(line) : line);
}

// The shorter one of two that are as close.
int64_t ClosestLength(int64_t length, const std::vector<TextUnits>& references) {
  int64_t closest = references.front().size();
  for (const TextUnits& reference : references) {
    const int64_t difference = std::abs(reference.size() - length);
    const int64_t least = std::abs(closest - length);
    if (difference < least || (difference == least && reference.size() < closest)) {
      closest = reference.size();
    }
  }
  return closest;
}

// Of each n-gram the greatest count in a reference.
NGramCounts GreatestCounts(const std::vector<TextUnits>& references, int64_t order) {
  NGramCounts greatest = CountNGrams(references.front(), order);
  for (size_t i = 1; i < references.size(); ++i) {
    for (const auto& [ngram, count] : CountNGrams(references[i], order)) {
      int64_t& kept = greatest[ngram];
      kept = std::max(kept, count);
    }
  }
  return greatest;
}

double BrevityPenalty(const BleuCounts& counts) {
  if (counts.hypothesis_length >= counts.reference_length) return 1;
  if (counts.hypothesis_length == 0) return 0;
  return std::exp(1 - static_cast<double>(counts.reference_length) /
                          static_cast<double>(counts.hypothesis_length));
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t i = 0; i < kBleuOrders; ++i) {
    matches[i] += other.matches[i];
    totals[i] += other.totals[i];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuCounts CountBleu(std::string_view hypothesis, std::span<const std::string_view> references,
                     const BleuOptions& options) {
  CHECK(!references.empty()) << "no reference";
  const TextUnits words = Words(hypothesis, options);
  std::vector<TextUnits> given;
  for (const std::string_view reference : references) given.push_back(Words(reference, options));
  BleuCounts counts{.hypothesis_length = words.size(),
                    .reference_length = ClosestLength(words.size(), given)};
  for (size_t i = 0; i < kBleuOrders; ++i) {
    const auto order = static_cast<int64_t>(i + 1);
    counts.totals[i] = TotalNGrams(words, order);
    counts.matches[i] = MatchingNGrams(CountNGrams(words, order), GreatestCounts(given, order));
  }
  return counts;
}

BleuScore ScoreBleu(const BleuCounts& counts) {
  BleuScore result{.brevity_penalty = BrevityPenalty(counts), .counts = counts};
  const auto& matches = counts.matches;
  if (std::all_of(matches.begin(), matches.end(), [](int64_t n) { return n == 0; })) return result;
  double smoothing = 1;  // doubles at each order without a match
  for (size_t i = 0; i < kBleuOrders && counts.totals[i] > 0; ++i) {
    const auto total = static_cast<double>(counts.totals[i]);
    if (matches[i] == 0) smoothing *= 2;
    result.precisions[i] =
        matches[i] == 0 ? 100 / (smoothing * total) : 100 * static_cast<double>(matches[i]) / total;
  }
  double logarithms = 0;
  for (const double precision : result.precisions) {
    // An order without n-grams makes the score 0.
    if (precision == 0) return result;
    logarithms += std::log(precision);
  }
  result.score = result.brevity_penalty * std::exp(logarithms / static_cast<double>(kBleuOrders));
  return result;
}

}  // namespace stagecoach
