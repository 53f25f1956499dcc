// mlp, a network: an image as one vector, then `layers` linear layers, all but the last of the
// hidden width and with a ReLU behind. A partition may cut behind each linear and each ReLU.
#ifndef STAGECOACH_NETWORK_ZOO_MLP_H_
#define STAGECOACH_NETWORK_ZOO_MLP_H_

#include <cstdint>
#include <vector>

#include "network/limits.h"

namespace stagecoach {

struct MlpNetworkSpec {
  static constexpr const char* kNetwork = "mlp";
  std::vector<int64_t> image;  // height, width, channels
  int64_t hidden = 0, layers = 2, classes = 0;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("hidden", hidden, 0, kMaxHidden);  // 0 if no layer has it
    visit.Count("layers", layers, 1, kMaxLayers / 2);
    visit.Count("classes", classes, 2, kMaxVocabulary);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_MLP_H_
