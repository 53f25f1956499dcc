#include "scores/chrf.h"

#include <string>
#include <vector>

#include "base/errors/check.h"
#include "scores/ngrams.h"

namespace stagecoach {
namespace {

constexpr double kRecallFactor = 4;  // beta = 2, squared

}  // namespace

ChrfCounts& ChrfCounts::operator+=(const ChrfCounts& other) {
  for (size_t i = 0; i < kChrfOrders; ++i) {
    hypothesis[i] += other.hypothesis[i];
    reference[i] += other.reference[i];
    matches[i] += other.matches[i];
  }
  return *this;
}

ChrfCounts CountChrf(std::string_view hypothesis, std::span<const std::string_view> references) {
  CHECK(!references.empty()) << "no reference";
  const TextUnits characters = CharacterUnits(hypothesis);
  std::array<NGramCounts, kChrfOrders> own;
  for (size_t i = 0; i < kChrfOrders; ++i) {
    own[i] = CountNGrams(characters, static_cast<int64_t>(i + 1));
  }
  ChrfCounts best;
  double best_score = -1;
  for (const std::string_view text : references) {
    const TextUnits reference = CharacterUnits(text);
    ChrfCounts counts;
    for (size_t i = 0; i < kChrfOrders; ++i) {
      const auto order = static_cast<int64_t>(i + 1);
      counts.reference[i] = TotalNGrams(reference, order);
      if (counts.reference[i] == 0) continue;
      counts.hypothesis[i] = TotalNGrams(characters, order);
      counts.matches[i] = MatchingNGrams(own[i], CountNGrams(reference, order));
    }
    const double score = ScoreChrf(counts);
    if (score > best_score) {
      best = counts;
      best_score = score;
    }
  }
  return best;
}

double ScoreChrf(const ChrfCounts& counts) {
  double precision = 0, recall = 0, orders = 0;
  for (size_t i = 0; i < kChrfOrders; ++i) {
    if (counts.hypothesis[i] == 0 || counts.reference[i] == 0) continue;
    const auto matches = static_cast<double>(counts.matches[i]);
    precision += matches / static_cast<double>(counts.hypothesis[i]);
    recall += matches / static_cast<double>(counts.reference[i]);
    ++orders;
  }
  if (orders == 0 || precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double score = (1 + kRecallFactor) * precision * recall;
  return 100 * (score / (kRecallFactor * precision + recall));
}

}  // namespace stagecoach
