// Augmentation: a network's view of a picture, as pure functions of (seed, epoch, sample). A
// resumed job, any number of stages and any number of decoding threads get the same numbers.
//
// The order is: a part of the picture in the network's size, a shift with borders of zeros, a
// mirror. Then brightness, contrast, saturation, hue. Then numbers, and a square of zeros. Each has
// draws of its own. So switching one on or off leaves the draws of the others as they were.
// Threads: pure functions, any thread.
// Units:   pixels; factors are of 1.
#ifndef STAGECOACH_STAGE_PICTURES_AUGMENT_H_
#define STAGECOACH_STAGE_PICTURES_AUGMENT_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/numbers/random.h"
#include "stage/pictures/picture.h"
#include "stage/pictures/resample.h"

namespace stagecoach {

// The random numbers of one sample in one epoch: word i % 4 of Philox block i / 4 (docs/formats.md,
// "Random numbers").
class SampleDraws {
 public:
  SampleDraws(uint64_t seed, uint64_t epoch, uint64_t sample)
      : seed_(seed), epoch_(epoch), sample_(sample) {}
  uint32_t Bits(uint32_t i) const;
  // Draw i in [0, count); count is at most 2^32.
  int64_t Below(uint32_t i, int64_t count) const {
    return static_cast<int64_t>(uint64_t{Bits(i)} * static_cast<uint64_t>(count) >> 32);
  }
  double Unit(uint32_t i) const { return Bits(i) / 4294967296.0; }  // in [0, 1)

 private:
  const uint64_t seed_, epoch_, sample_;
};

struct Augmentation {
  int64_t height = 0, width = 0;  // the network's input
  int64_t shorter_side =
      0;  // its length before the middle is cut out; 0: the picture just covers [height, width]
  double least_area =
      0;  // not 0: takes a random part of the picture, with at least this share of its area
  int64_t padding = 0;  // zeros around it before a random [height, width] is taken
  bool flip = false;    // mirrors a picture with probability 1/2
  double brightness = 0, contrast = 0,
         saturation = 0;  // factors are drawn from [1 - x, 1 + x], x below 1
  double hue = 0;      // colours are turned by a share of their circle from [-x, x], x at most 1/2
  int64_t cutout = 0;  // side of the square
};

// For evaluation: nothing is drawn.
Picture FitPicture(const Picture& picture, const Augmentation& augmentation);
// For training.
Picture Augment(const Picture& picture, const Augmentation& augmentation, const SampleDraws& draws);

// The same for a picture's mask, which has its size and one channel. It gets the same part, shift
// and mirror, with the nearest pixels; colours do not change. `border`: the value beyond the border
// of a shifted picture.
Picture FitMask(const Picture& mask, const Augmentation& augmentation);
Picture AugmentMask(const Picture& mask, const Augmentation& augmentation, uint8_t border,
                    const SampleDraws& draws);

// (x / 255 - mean) / deviation of each byte x, by channel, in double, rounded to float.
class PixelNumbers {
 public:
  // One mean and one deviation for each channel.
  PixelNumbers(std::span<const double> means, std::span<const double> deviations);
  // numbers: as many as the picture has bytes.
  void Convert(const Picture& picture, std::span<float> numbers) const;

 private:
  std::vector<std::array<float, 256>> tables_;
};

// Sets a square around a random place of an image [height, width, channels] to zeros. The square
// may reach beyond the image.
void CutOut(const Augmentation& augmentation, const SampleDraws& draws, int64_t channels,
            std::span<float> numbers);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_AUGMENT_H_
