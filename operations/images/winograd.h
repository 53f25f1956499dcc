// Convolutions that a processor computes by Winograd's minimal filtering F(4x4, 3x3) (Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", 1509.09308). A tile of 4x4 places and
// a pair of channels takes 36 products instead of 144. Sums are rounded otherwise than a direct
// convolution's, so the choice decides the bits. The choice follows from the shape alone. Stages,
// plans and tests use these functions.
// Units: elements, bytes. Threads: pure functions.
#ifndef STAGECOACH_OPERATIONS_IMAGES_WINOGRAD_H_
#define STAGECOACH_OPERATIONS_IMAGES_WINOGRAD_H_

#include <algorithm>
#include <cstdint>

#include "operations/images/convolution.h"

namespace stagecoach {

// A convolution without its samples.
struct ConvolutionExtents {
  Plane image, window, places;
  int64_t in = 0, out = 0;  // channels
};

// With fewer channels or places, the transforms cost as much as the products save: those of inputs
// and outputs, and that of the weight for a call.
inline constexpr int64_t kWinogradChannels = 32;
inline constexpr int64_t kWinogradPlaces = 192;  // in an image
inline constexpr int64_t kWinogradCallPlaces =
    1024;  // from this number on the weight's transform is small

inline bool SuitsWinograd(const ConvolutionSteps& steps, const ConvolutionExtents& e) {
  return e.window == Plane{3, 3} && steps.stride == Plane{1, 1} && steps.dilation == Plane{1, 1} &&
         steps.groups == 1 && steps.padding.height <= 1 && steps.padding.width <= 1 &&
         e.in >= kWinogradChannels && e.out >= kWinogradChannels &&
         e.places.height * e.places.width >= kWinogradPlaces;
}

// Number of images that one call of a forward or an input's gradient computes. They pay for the
// weight's transform. But two images or more make at least two calls, so that two threads have
// work.
inline int64_t WinogradImages(int64_t samples, int64_t places) {
  const int64_t worth = (kWinogradCallPlaces + places - 1) / std::max<int64_t>(places, 1);
  return std::max<int64_t>(1, std::min(worth, (samples + 1) / 2));
}

// Upper bound of the bytes that a call of this many images takes beside its operands. A call that
// would take more is computed directly. It counts the library's blocks, the transformed weight,
// tiles of inputs and outputs, and both operands in the library's order of channels. The library
// blocks by the second cache, and takes 9 MB if that has 1 MiB. Tiles count half as much again, for
// whole blocks.
inline int64_t WinogradRoomBytes(const ConvolutionExtents& e, int64_t images) {
  constexpr int64_t kFloat = 4, kTile = 36 * kFloat, kLanes = 16, kBlocks = int64_t{16} << 20;
  const auto lanes = [](int64_t channels) { return (channels + kLanes - 1) / kLanes * kLanes; };
  const int64_t in = lanes(e.in), out = lanes(e.out);
  // An input's gradient has a place for each pixel, so `most` covers both.
  const Plane most = {std::max(e.image.height, e.places.height),
                      std::max(e.image.width, e.places.width)};
  const int64_t tiles = images * ((most.height + 3) / 4) * ((most.width + 3) / 4);
  const int64_t operands =
      images * (e.image.height * e.image.width * in + e.places.height * e.places.width * out);
  return kBlocks + kTile * (in * out + (in + out) * tiles * 3 / 2) + kFloat * operands;
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_IMAGES_WINOGRAD_H_
