// unet: an encoder and a decoder for images with a class for each pixel (Ronneberger et al. 2015,
// 1505.04597). The encoder has a cell on each of `depth` levels. A cell is `convolutions` 3x3
// convolutions that keep the extents, each with its norm and a ReLU. Its output goes to the
// decoder's cell of its level (a skip), and through max_pool 2x2 to the next level. At the bottom
// is a cell. Then each level has upsampling, the skip in front of its output, and a cell. Last
// comes a 1x1 convolution with bias. With C = base and i = level from 0:
//   transposed  the bottom has C * 2^depth channels. A transposed convolution 2x2, stride 2,
//               without bias, halves the channels. The decoder's cell i gives C * 2^i.
//   nearest     torchgpipe's benchmark. The bottom has C * 2^depth, but its last convolution gives
//               C * 2^(depth - 1). Pixels are repeated. The decoder's cell i gives C * 2^(i - 1).
// Convolutions without a norm have a bias. Each cell and the last convolution is a layer: 2 * depth
// + 2 of them. If a cut lies in some levels, their skips cross it. Reads "images", and "masks", an
// id below channels_out for each pixel.
#ifndef STAGECOACH_NETWORK_ZOO_UNET_H_
#define STAGECOACH_NETWORK_ZOO_UNET_H_

#include <cstdint>
#include <vector>

#include "network/limits.h"

namespace stagecoach {

enum class UnetNorm { kBatch, kNone };
enum class UnetUpsample { kTransposed, kNearest };

struct UnetSpec {
  static constexpr const char* kNetwork = "unet";
  std::vector<int64_t> image;  // height, width, channels
  int64_t channels_out = 0;    // classes of a pixel
  int64_t base = 64;           // channels of the first level
  int64_t depth = 4;           // levels
  int64_t convolutions = 2;    // of a cell
  UnetUpsample upsample = UnetUpsample::kTransposed;
  UnetNorm norm = UnetNorm::kBatch;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("channels_out", channels_out, 2, kMaxVocabulary);
    visit.Count("base", base, 1, kMaxWidth);
    visit.Count("depth", depth, 1, 12);
    visit.Count("convolutions", convolutions, 1, 256);
    visit.Choice("upsample", upsample, {"transposed", "nearest"});
    visit.Choice("norm", norm, {"batch", "none"});
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_UNET_H_
