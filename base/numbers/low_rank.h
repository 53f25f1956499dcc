// LowRank: adds a product of two narrow matrices to a wide one, as an adapter does (LoRA,
// 2106.09685).
// Threads: pure function.
// Shapes:  row-major. a: [rank, columns], b: [rows, rank], weight: [rows, columns].
// Errors:  sizes that do not fit are CHECKed.
#ifndef STAGECOACH_BASE_NUMBERS_LOW_RANK_H_
#define STAGECOACH_BASE_NUMBERS_LOW_RANK_H_

#include <cstdint>
#include <span>

namespace stagecoach {

// weight[i, j] += scale * sum over k of b[i, k] * a[k, j], in double, rounded once. Ticks progress.
void AddLowRank(std::span<const float> a, std::span<const float> b, int64_t rank, double scale,
                std::span<float> weight);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_LOW_RANK_H_
