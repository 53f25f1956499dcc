#include "scores/corpus_counts.h"

namespace stagecoach {
namespace {

// Calls `one` with each number, in the order of messages.
template <typename Counts, typename One>
void ForEach(Counts& counts, const One& one) {
  for (auto* orders : {&counts.bleu.matches, &counts.bleu.totals}) {
    for (auto& number : *orders) one(number);
  }
  one(counts.bleu.hypothesis_length);
  one(counts.bleu.reference_length);
  for (auto* orders : {&counts.chrf.hypothesis, &counts.chrf.reference, &counts.chrf.matches}) {
    for (auto& number : *orders) one(number);
  }
}

}  // namespace

CorpusCounts& CorpusCounts::operator+=(const CorpusCounts& other) {
  bleu += other.bleu;
  chrf += other.chrf;
  return *this;
}

std::vector<int64_t> CorpusCounts::Numbers() const {
  std::vector<int64_t> numbers;
  ForEach(*this, [&numbers](int64_t number) { numbers.push_back(number); });
  return numbers;
}

std::optional<CorpusCounts> CorpusCounts::FromNumbers(std::span<const int64_t> numbers) {
  if (numbers.size() != kCorpusNumbers) return std::nullopt;
  CorpusCounts counts;
  size_t next = 0;
  ForEach(counts, [&](int64_t& number) { number = numbers[next++]; });
  return counts;
}

CorpusCounts CountSegment(std::string_view hypothesis, std::string_view reference) {
  const std::string_view references[] = {reference};
  return {CountBleu(hypothesis, references, {}), CountChrf(hypothesis, references)};
}

}  // namespace stagecoach
