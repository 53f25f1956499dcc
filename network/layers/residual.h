// residual: x + f(x), f = the inner layers in order; they must keep the width.
#ifndef STAGECOACH_NETWORK_LAYERS_RESIDUAL_H_
#define STAGECOACH_NETWORK_LAYERS_RESIDUAL_H_

#include <vector>

#include "network/layer_spec.h"

namespace stagecoach {

struct ResidualSpec {
  static constexpr const char* kKind = "residual";
  std::vector<LayerSpec> layers;
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_RESIDUAL_H_
