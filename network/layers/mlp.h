// mlp: linear, GELU (tanh form), linear. Parameters: up.weight [hidden, width], up.bias, down.weight
// [width, hidden], down.bias.
#ifndef STAGECOACH_NETWORK_LAYERS_MLP_H_
#define STAGECOACH_NETWORK_LAYERS_MLP_H_

#include <cstdint>

#include "network/limits.h"

namespace stagecoach {

struct MlpSpec {
  static constexpr const char* kKind = "mlp";
  int64_t hidden = 0;  // width between the two linears
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("hidden", hidden, 1, kMaxHidden);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_MLP_H_
