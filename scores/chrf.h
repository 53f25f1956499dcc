// chrF2 of a corpus (Popovic, 2015), equal to sacreBLEU 2.6.0: n-grams of 1 to 6 characters without
// white space, no words, recall twice as important as precision, effective order. Of several
// references a segment counts the one with which it scores best, the first of equals. Counts are
// summed in any order and any parts, and their sum gives the score.
// Threads: pure functions.
// Units:   scores in percent.
// Errors:  none; text is UTF-8 (scores/code_points.h). CHECKs that there is a reference.
#ifndef STAGECOACH_SCORES_CHRF_H_
#define STAGECOACH_SCORES_CHRF_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stagecoach {

inline constexpr size_t kChrfOrders = 6;

struct ChrfCounts {
  // Of order n at n - 1. If a reference has no n-gram of an order, its hypothesis counts none.
  std::array<int64_t, kChrfOrders> hypothesis{}, reference{}, matches{};

  ChrfCounts& operator+=(const ChrfCounts& other);
  friend bool operator==(const ChrfCounts&, const ChrfCounts&) = default;
};

// Of one segment and its references.
ChrfCounts CountChrf(std::string_view hypothesis, std::span<const std::string_view> references);

double ScoreChrf(const ChrfCounts& counts);

}  // namespace stagecoach

#endif  // STAGECOACH_SCORES_CHRF_H_
