// MeasurePictures: mean and deviation of the pixels of pictures, by channel, as (x / 255).
// Threads: blocks; uses `threads` more threads.
// Errors:  that of a picture that cannot be read.
#ifndef STAGECOACH_STAGE_DATA_PICTURE_MEASURE_H_
#define STAGECOACH_STAGE_DATA_PICTURE_MEASURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/data/picture_set.h"
#include "stage/pictures/augment.h"

namespace stagecoach {

inline constexpr int64_t kMostMeasuredPictures = 10000;

struct PixelMoments {
  std::vector<double> mean, deviation;
};

// Measures at most kMostMeasuredPictures, spread evenly, as an evaluation sees them. Sums are of
// integers, so their order does not matter. A channel with a single value has the deviation 1.
absl::StatusOr<PixelMoments> MeasurePictures(const PictureSet& set,
                                             const Augmentation& augmentation, int64_t channels,
                                             int64_t threads);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PICTURE_MEASURE_H_
