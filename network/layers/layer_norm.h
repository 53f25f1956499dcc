// layer_norm over the width. Parameters: weight [width], bias [width].
#ifndef STAGECOACH_NETWORK_LAYERS_LAYER_NORM_H_
#define STAGECOACH_NETWORK_LAYERS_LAYER_NORM_H_

#include "operations/attributes.h"

namespace stagecoach {

struct LayerNormSpec {
  static constexpr const char* kKind = "layer_norm";
  double epsilon = 1e-5;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_LAYER_NORM_H_
