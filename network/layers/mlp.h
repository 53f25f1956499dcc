// mlp: linear, GELU (in the tanh form or exact) or ReLU, dropout, linear. Parameters: up.weight
// [hidden, width], up.bias, down.weight [width, hidden], down.bias; biases unless `bias` is false.
#ifndef STAGECOACH_NETWORK_LAYERS_MLP_H_
#define STAGECOACH_NETWORK_LAYERS_MLP_H_

#include <cstdint>

#include "network/limits.h"

namespace stagecoach {

struct MlpSpec {
  static constexpr const char* kKind = "mlp";
  int64_t hidden = 0;       // width between the two linears
  bool exact_gelu = false;  // by the error function
  double dropout = 0;       // behind the activation
  bool bias = true;
  bool relu = false;  // in place of GELU
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("hidden", hidden, 1, kMaxHidden);
    visit.Flag("exact_gelu", exact_gelu);
    visit.Rate("dropout", dropout);
    bool no_bias = !bias;  // what a job leaves out is false
    visit.Flag("no_bias", no_bias);
    bias = !no_bias;
    visit.Flag("relu", relu);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_MLP_H_
