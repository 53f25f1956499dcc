// swiglu: down(silu(gate(x)) * up(x)), three linears without bias. Parameters: gate.weight [hidden,
// width], up.weight [hidden, width], down.weight [width, hidden].
#ifndef STAGECOACH_NETWORK_LAYERS_SWIGLU_H_
#define STAGECOACH_NETWORK_LAYERS_SWIGLU_H_

#include <cstdint>

#include "network/limits.h"

namespace stagecoach {

struct SwigluSpec {
  static constexpr const char* kKind = "swiglu";
  int64_t hidden = 0;  // width of the outputs of gate and up
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("hidden", hidden, 1, kMaxHidden);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_SWIGLU_H_
