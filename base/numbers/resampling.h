// Resampling: a line or a grid of numbers at another size, antialiased. Each new element is a mean of
// the old ones under a filter around its center. If there are fewer new elements than old ones, the
// filter gets wider by their ratio.
// Threads: pure functions. The bits are the same on every machine: sums are of doubles, in order.
// Errors:  sizes that do not fit are CHECKed.
#ifndef STAGECOACH_BASE_NUMBERS_RESAMPLING_H_
#define STAGECOACH_BASE_NUMBERS_RESAMPLING_H_

#include <cstdint>
#include <span>
#include <vector>

namespace stagecoach {

// kTriangle: bilinear. kCubic: bicubic with a = -0.5. Both are Pillow's, and PyTorch's with
// antialias=True and align_corners=False.
enum class ResamplingFilter { kTriangle, kCubic };

// Sets the weights of new element `i` of `to`, which add up to 1: those of the old elements
// [first, first + weights->size()) of `from`. Returns `first`.
int64_t ResamplingWeights(ResamplingFilter filter, int64_t from, int64_t to, int64_t i,
                          std::vector<double>* weights);

struct GridSize {
  int64_t height = 0, width = 0;
  friend bool operator==(const GridSize&, const GridSize&) = default;
};

// Resamples `from` [from_size, channels] as `to` [to_size, channels] with kCubic, row-major. Each
// number is rounded once. Ticks progress.
void ResampleGrid(std::span<const float> from, GridSize from_size, int64_t channels,
                  std::span<float> to, GridSize to_size);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_RESAMPLING_H_
