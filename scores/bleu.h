// BLEU of a corpus (Papineni et al., 2002), equal to sacreBLEU 2.6.0: orders 1 to 4, exponential
// smoothing, effective order off, case as it is. A segment gives counts. Counts are summed in any order and any
// parts, and their sum gives the score.
// Threads: pure functions.
// Units:   scores and precisions in percent; lengths in words.
// Errors:  none; text is UTF-8 (scores/code_points.h). CHECKs that there is a reference.
// See:     https://github.com/mjpost/sacrebleu
#ifndef STAGECOACH_SCORES_BLEU_H_
#define STAGECOACH_SCORES_BLEU_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stagecoach {

inline constexpr size_t kBleuOrders = 4;

enum class BleuTokenizer : uint8_t { k13a, kNone };

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
};

struct BleuCounts {
  // Of order n at n - 1: n-grams that a reference has too, and all n-grams of the hypotheses.
  std::array<int64_t, kBleuOrders> matches{}, totals{};
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;  // of the closest reference of each segment

  BleuCounts& operator+=(const BleuCounts& other);
  friend bool operator==(const BleuCounts&, const BleuCounts&) = default;
};

// Of one segment and its references.
BleuCounts CountBleu(std::string_view hypothesis, std::span<const std::string_view> references,
                     const BleuOptions& options);

struct BleuScore {
  double score = 0;
  std::array<double, kBleuOrders> precisions{};
  double brevity_penalty = 1;
  BleuCounts counts;
};

BleuScore ScoreBleu(const BleuCounts& counts);

}  // namespace stagecoach

#endif  // STAGECOACH_SCORES_BLEU_H_
