#include "stage/pictures/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

// Which draw is for what. Numbers are never given to something else: jobs keep their bits.
enum Draw : uint32_t {
  kShiftTop = 0,
  kShiftLeft = 1,
  kMirror = 2,
  kCutOutTop = 3,
  kCutOutLeft = 4,
  kBrightness = 5,
  kContrast = 6,
  kSaturation = 7,
  kPart = 8,  // and on: four for each of kPartAttempts
  kHue = 48,
};
constexpr uint32_t kPartAttempts = 10, kDrawsOfAttempt = 4;

// Of |x| below 0.3, to the last bit or two: the library's may differ from one version to the next.
double SmallExp(double x) {
  double sum = 1;
  for (int n = 16; n >= 1; --n) sum = 1 + x / n * sum;
  return sum;
}
// Sides are 3/4 to 4/3 of each other.
constexpr double kMostRatio = 4.0 / 3.0, kLogMostRatio = 0.28768207245178090;

// The whole width or height, and the middle of the other side.
PictureBox MiddlePart(const Picture& picture) {
  const auto most_of = [](int64_t side) {
    return static_cast<int64_t>(std::floor(static_cast<double>(side) * kMostRatio + 0.5));
  };
  PictureBox box{.height = std::min(picture.height, most_of(picture.width)),
                 .width = std::min(picture.width, most_of(picture.height))};
  box.top = (picture.height - box.height) / 2;
  box.left = (picture.width - box.width) / 2;
  return box;
}

// RandomResizedCrop of PyTorch's transforms, with our draws.
PictureBox RandomPart(const Picture& picture, double least_area, const SampleDraws& draws) {
  const double all = static_cast<double>(picture.height) * static_cast<double>(picture.width);
  for (uint32_t attempt = 0; attempt < kPartAttempts; ++attempt) {
    const uint32_t first = kPart + attempt * kDrawsOfAttempt;
    const double area = all * (least_area + (1 - least_area) * draws.Unit(first));
    const double ratio = SmallExp(kLogMostRatio * (2 * draws.Unit(first + 1) - 1));
    const auto width = static_cast<int64_t>(std::floor(std::sqrt(area * ratio) + 0.5));
    const auto height = static_cast<int64_t>(std::floor(std::sqrt(area / ratio) + 0.5));
    if (width < 1 || height < 1 || width > picture.width || height > picture.height) continue;
    return {.top = draws.Below(first + 2, picture.height - height + 1),
            .left = draws.Below(first + 3, picture.width - width + 1),
            .height = height,
            .width = width};
  }
  return MiddlePart(picture);
}

Picture Shifted(const Picture& picture, int64_t padding, uint8_t border, const SampleDraws& draws) {
  const int64_t down = draws.Below(kShiftTop, 2 * padding + 1) - padding;
  const int64_t right = draws.Below(kShiftLeft, 2 * padding + 1) - padding;
  Picture result(picture.height, picture.width, picture.channels);
  std::fill(result.bytes.begin(), result.bytes.end(), border);
  const int64_t left = std::clamp<int64_t>(-right, 0, picture.width);
  const int64_t end = std::clamp<int64_t>(picture.width - right, left, picture.width);
  if (left == end) return result;  // shifted out, and `right` may be far beyond a row
  for (int64_t y = 0; y < picture.height; ++y) {
    const int64_t from = y + down;
    if (from < 0 || from >= picture.height) continue;
    const int64_t first = std::max<int64_t>(0, right);
    const int64_t count = (end - left) * picture.channels;
    std::copy_n(picture.row(from) + first * picture.channels, count,
                result.row(y) + left * picture.channels);
  }
  return result;
}

bool IsMirrored(const Augmentation& augmentation, const SampleDraws& draws) {
  return augmentation.flip && draws.Bits(kMirror) >> 31 != 0;
}

void MirrorRows(Picture* picture) {
  for (int64_t y = 0; y < picture->height; ++y) {
    uint8_t* const row = picture->row(y);
    for (int64_t i = 0, j = picture->width - 1; i < j; ++i, --j) {
      std::swap_ranges(row + i * picture->channels, row + (i + 1) * picture->channels,
                       row + j * picture->channels);
    }
  }
}

// A factor in [1 - strength, 1 + strength], of 2^16.
int64_t DrawFactor(uint32_t draw, double strength, const SampleDraws& draws) {
  const auto reach = static_cast<int64_t>(strength * 65536 + 0.5);
  return 65536 - reach + draws.Below(draw, 2 * reach + 1);
}

// From `base` away or towards it.
uint8_t Scaled(int64_t base, int64_t x, int64_t factor) {
  return static_cast<uint8_t>(
      std::clamp<int64_t>((base * (65536 - factor) + x * factor + 32768) >> 16, 0, 255));
}

void ChangeBrightness(int64_t factor, Picture* picture) {
  for (uint8_t& byte : picture->bytes) byte = Scaled(0, byte, factor);
}

void ChangeContrast(int64_t factor, Picture* picture) {
  const int64_t pixels = picture->height * picture->width;
  int64_t sum = 0;
  for (int64_t i = 0; i < pixels; ++i) {
    const uint8_t* const pixel = picture->bytes.data() + i * picture->channels;
    sum += picture->channels == 3 ? GreyOf(pixel) : *pixel;
  }
  const int64_t mean = (2 * sum + pixels) / (2 * pixels);
  for (uint8_t& byte : picture->bytes) byte = Scaled(mean, byte, factor);
}

void ChangeSaturation(int64_t factor, Picture* picture) {
  if (picture->channels != 3) return;
  uint8_t* const end = picture->bytes.data() + picture->bytes.size();
  for (uint8_t* pixel = picture->bytes.data(); pixel < end; pixel += 3) {
    const uint8_t grey = GreyOf(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = Scaled(grey, pixel[c], factor);
  }
}

// The circle of colours has six parts of kHuePart: from red over yellow, green, cyan, blue and
// magenta to red. In each of them one channel is the largest, one is the smallest, and the third
// rises or falls between these.
constexpr int64_t kHuePart = 65536, kHueCircle = 6 * kHuePart;

// turn: in [0, kHueCircle). The largest and the smallest of a pixel's channels stay what they are.
void TurnHue(int64_t turn, uint8_t* pixel) {
  const int64_t red = pixel[0], green = pixel[1], blue = pixel[2];
  const int64_t most = std::max({red, green, blue}), least = std::min({red, green, blue});
  const int64_t range = most - least;
  if (range == 0) return;
  // Where it is between the two neighbours of its largest channel, in (-kHuePart, kHuePart].
  const auto [center, offset] = most == red     ? std::pair(int64_t{0}, green - blue)
                                : most == green ? std::pair(2 * kHuePart, blue - red)
                                                : std::pair(4 * kHuePart, red - green);
  const int64_t hue = (center + kHueCircle + turn + offset * kHuePart / range) % kHueCircle;
  const int64_t rise = (range * (hue % kHuePart) + kHuePart / 2) / kHuePart;
  const auto least_byte = static_cast<uint8_t>(least), most_byte = static_cast<uint8_t>(most);
  const auto rising = static_cast<uint8_t>(least + rise),
             falling = static_cast<uint8_t>(most - rise);
  const std::array<std::array<uint8_t, 3>, 6> parts = {{{most_byte, rising, least_byte},
                                                        {falling, most_byte, least_byte},
                                                        {least_byte, most_byte, rising},
                                                        {least_byte, falling, most_byte},
                                                        {rising, least_byte, most_byte},
                                                        {most_byte, least_byte, falling}}};
  std::copy_n(parts[static_cast<size_t>(hue / kHuePart)].begin(), 3, pixel);
}

// strength: a share of the circle, at most 1/2.
void ChangeHue(double strength, const SampleDraws& draws, Picture* picture) {
  if (picture->channels != 3) return;
  const auto reach = static_cast<int64_t>(strength * static_cast<double>(kHueCircle) + 0.5);
  const int64_t turn = (kHueCircle - reach + draws.Below(kHue, 2 * reach + 1)) % kHueCircle;
  uint8_t* const end = picture->bytes.data() + picture->bytes.size();
  for (uint8_t* pixel = picture->bytes.data(); pixel < end; pixel += 3) TurnHue(turn, pixel);
}

}  // namespace

uint32_t SampleDraws::Bits(uint32_t i) const {
  // The last word is none of a layer's streams and none of a permutation's.
  const PhiloxCounter counter = {i / 4 | static_cast<uint32_t>(sample_ >> 32) << 16,
                                 static_cast<uint32_t>(sample_), static_cast<uint32_t>(epoch_),
                                 static_cast<uint32_t>(epoch_ >> 32) ^ 0xa0600000U};
  return Philox4x32(counter, SeedKey(seed_))[i % 4];
}

Picture FitPicture(const Picture& picture, const Augmentation& augmentation) {
  const auto& [height, width] = std::pair(augmentation.height, augmentation.width);
  return augmentation.shorter_side > 0
             ? FitByShorterSide(picture, augmentation.shorter_side, height, width)
             : FitToCover(picture, height, width);
}

Picture Augment(const Picture& picture, const Augmentation& augmentation,
                const SampleDraws& draws) {
  Picture result = augmentation.least_area > 0
                       ? Resample(picture, RandomPart(picture, augmentation.least_area, draws),
                                  augmentation.height, augmentation.width)
                       : FitPicture(picture, augmentation);
  if (augmentation.padding > 0) result = Shifted(result, augmentation.padding, 0, draws);
  if (IsMirrored(augmentation, draws)) MirrorRows(&result);
  if (augmentation.brightness > 0) {
    ChangeBrightness(DrawFactor(kBrightness, augmentation.brightness, draws), &result);
  }
  if (augmentation.contrast > 0) {
    ChangeContrast(DrawFactor(kContrast, augmentation.contrast, draws), &result);
  }
  if (augmentation.saturation > 0) {
    ChangeSaturation(DrawFactor(kSaturation, augmentation.saturation, draws), &result);
  }
  if (augmentation.hue > 0) ChangeHue(augmentation.hue, draws, &result);
  return result;
}

Picture FitMask(const Picture& mask, const Augmentation& augmentation) {
  const auto& [height, width] = std::pair(augmentation.height, augmentation.width);
  const PictureFit fit = augmentation.shorter_side > 0
                             ? ShorterSideFit(mask, augmentation.shorter_side, height, width)
                             : CoveringFit(mask, height, width);
  return NearestPart(mask, fit.box, fit.rows, fit.columns, fit.part);
}

Picture AugmentMask(const Picture& mask, const Augmentation& augmentation, uint8_t border,
                    const SampleDraws& draws) {
  const auto& [height, width] = std::pair(augmentation.height, augmentation.width);
  Picture result = augmentation.least_area > 0
                       ? NearestPart(mask, RandomPart(mask, augmentation.least_area, draws), height,
                                     width, {.height = height, .width = width})
                       : FitMask(mask, augmentation);
  if (augmentation.padding > 0) result = Shifted(result, augmentation.padding, border, draws);
  if (IsMirrored(augmentation, draws)) MirrorRows(&result);
  return result;
}

PixelNumbers::PixelNumbers(std::span<const double> means, std::span<const double> deviations)
    : tables_(means.size()) {
  CHECK_EQ(means.size(), deviations.size());
  for (size_t c = 0; c < means.size(); ++c) {
    for (int x = 0; x < 256; ++x) {
      tables_[c][static_cast<size_t>(x)] =
          static_cast<float>((x / 255.0 - means[c]) / deviations[c]);
    }
  }
}

void PixelNumbers::Convert(const Picture& picture, std::span<float> numbers) const {
  CHECK_EQ(static_cast<size_t>(picture.channels), tables_.size());
  CHECK_EQ(numbers.size(), picture.bytes.size());
  for (size_t c = 0; c < tables_.size(); ++c) {
    const std::array<float, 256>& table = tables_[c];
    for (size_t i = c; i < numbers.size(); i += tables_.size()) {
      numbers[i] = table[picture.bytes[i]];
    }
  }
}

void CutOut(const Augmentation& augmentation, const SampleDraws& draws, int64_t channels,
            std::span<float> numbers) {
  if (augmentation.cutout == 0) return;
  const auto [height, width] = std::pair(augmentation.height, augmentation.width);
  const int64_t top = draws.Below(kCutOutTop, height) - augmentation.cutout / 2;
  const int64_t left = draws.Below(kCutOutLeft, width) - augmentation.cutout / 2;
  const int64_t first = std::max<int64_t>(0, left);
  const int64_t end = std::min(width, left + augmentation.cutout);
  for (int64_t y = std::max<int64_t>(0, top); y < std::min(height, top + augmentation.cutout);
       ++y) {
    std::fill_n(numbers.begin() + (y * width + first) * channels, (end - first) * channels, 0.0F);
  }
}

}  // namespace stagecoach
