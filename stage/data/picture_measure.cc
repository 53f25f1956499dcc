#include "stage/data/picture_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "base/errors/status.h"
#include "stage/data/picture_source.h"

namespace stagecoach {

absl::StatusOr<PixelMoments> MeasurePictures(const PictureSet& set,
                                             const Augmentation& augmentation, int64_t channels,
                                             int64_t threads) {
  // Squares of 10000 pictures of 2^30 pixels each stay below 2^64.
  std::array<uint64_t, 3> sums = {}, squares = {};
  std::mutex mutex;
  const int64_t measured = std::min(set.count(), kMostMeasuredPictures);
  RETURN_IF_ERROR(ForEachPicture(threads, measured, [&](int64_t i) -> absl::Status {
    ASSIGN_OR_RETURN(const Picture read, set.Read(i * set.count() / measured, channels));
    const Picture picture = FitPicture(read, augmentation);
    std::array<uint64_t, 3> sum = {}, square = {};
    for (size_t at = 0; at < picture.bytes.size(); ++at) {
      const uint64_t x = picture.bytes[at];
      sum[at % static_cast<size_t>(channels)] += x;
      square[at % static_cast<size_t>(channels)] += x * x;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t c = 0; c < 3; ++c) {
      sums[c] += sum[c];
      squares[c] += square[c];
    }
    return absl::OkStatus();
  }));
  PixelMoments moments;
  const double count =
      static_cast<double>(measured) * static_cast<double>(augmentation.height * augmentation.width);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const double mean = static_cast<double>(sums[c]) / count;
    const double variance = static_cast<double>(squares[c]) / count - mean * mean;
    moments.mean.push_back(mean / 255);
    // Bytes that differ at all differ by more than rounding does.
    moments.deviation.push_back(variance > 1e-6 ? std::sqrt(variance) / 255 : 1);
  }
  return moments;
}

}  // namespace stagecoach
