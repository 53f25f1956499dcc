// Loops over a row of logits, each compiled for several instruction sets: a search spends most of
// its own time in them.
// Threads: pure functions.
// Units and shapes: a row has a logit for each token of the vocabulary, and is not empty.
// Determinism: the same results with every instruction set. Operations and their order are the
//          same, and -ffp-contract=off keeps the compiler from joining two of them.
#ifndef STAGECOACH_DECODING_ROW_LOOPS_H_
#define STAGECOACH_DECODING_ROW_LOOPS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stagecoach {

inline constexpr size_t kRowLanes = 64;
using RowLanes = std::array<float, kRowLanes>;

bool AllFinite(std::span<const float> logits);

// The greatest logit of each lane. Lane i has the tokens i, i + kRowLanes, i + 2 kRowLanes ...; a
// lane without tokens has minus infinity.
RowLanes GreatestOfLanes(std::span<const float> logits);

bool AnyAtLeast(std::span<const float> logits, float bound);

// The sum of exp(logit - greatest), if no logit is above `greatest`. Each exponential has an error
// of 1e-7 of itself at most; those below exp(-87) count as exp(-87).
double SumOfExponentials(std::span<const float> logits, float greatest);

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_ROW_LOOPS_H_
