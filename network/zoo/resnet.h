// resnet in the form for small images of He et al. (2015, 1512.03385, section 4.2): a 3x3 convolution; three stages of
// (depth - 2) / 6 basic blocks with width, 2 width and 4 width channels, the second and third beginning with a stride of
// 2; mean over the image; linear. A block is relu(f(x) + shortcut(x)), f = convolution, batch_norm, relu, convolution,
// batch_norm; the shortcut is x itself, or where the shape changes a 1x1 convolution with batch_norm. No convolution has
// a bias. Every block is one layer, so a partition cuts between blocks; depth 6n + 2 gives 3n + 2 layers.
#ifndef STAGECOACH_NETWORK_ZOO_RESNET_H_
#define STAGECOACH_NETWORK_ZOO_RESNET_H_

#include <cstdint>
#include <vector>

#include "network/limits.h"

namespace stagecoach {

struct ResnetSpec {
  static constexpr const char* kNetwork = "resnet";
  std::vector<int64_t> image;  // height, width, channels
  int64_t classes = 0;
  int64_t depth = 20;  // 6n + 2
  int64_t width = 16;  // channels of the first stage
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("classes", classes, 2, kMaxVocabulary);
    visit.Count("depth", depth, 8, 2 * (kMaxLayers - 2));
    visit.Count("width", width, 1, kMaxWidth / 4);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_RESNET_H_
