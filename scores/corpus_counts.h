// CorpusCounts: n-gram counts of some segments, for BLEU and chrF2. Counts are whole numbers, so parts
// may be added in any order.
// Threads: pure functions.
#ifndef STAGECOACH_SCORES_CORPUS_COUNTS_H_
#define STAGECOACH_SCORES_CORPUS_COUNTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scores/bleu.h"
#include "scores/chrf.h"

namespace stagecoach {

struct CorpusCounts {
  BleuCounts bleu;
  ChrfCounts chrf;

  CorpusCounts& operator+=(const CorpusCounts& other);
  friend bool operator==(const CorpusCounts&, const CorpusCounts&) = default;

  // In messages: BLEU's matches, totals, lengths of hypotheses and references; then chrF's counts of
  // hypotheses, references, matches.
  std::vector<int64_t> Numbers() const;
  // nullopt: other than kCorpusNumbers of them.
  static std::optional<CorpusCounts> FromNumbers(std::span<const int64_t> numbers);
};

inline constexpr size_t kCorpusNumbers = 2 * kBleuOrders + 2 + 3 * kChrfOrders;

// Of one segment with one reference.
CorpusCounts CountSegment(std::string_view hypothesis, std::string_view reference);

}  // namespace stagecoach

#endif  // STAGECOACH_SCORES_CORPUS_COUNTS_H_
