// mlp: linear, GELU (in the tanh form or exact), dropout, linear. Parameters: up.weight [hidden,
// width], up.bias, down.weight [width, hidden], down.bias.
#ifndef STAGECOACH_NETWORK_LAYERS_MLP_H_
#define STAGECOACH_NETWORK_LAYERS_MLP_H_

#include <cstdint>

#include "network/limits.h"

namespace stagecoach {

struct MlpSpec {
  static constexpr const char* kKind = "mlp";
  int64_t hidden = 0;       // width between the two linears
  bool exact_gelu = false;  // by the error function
  double dropout = 0;       // behind the GELU
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("hidden", hidden, 1, kMaxHidden);
    visit.Flag("exact_gelu", exact_gelu);
    visit.Rate("dropout", dropout);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_MLP_H_
