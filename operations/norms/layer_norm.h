// layer_norm: y = (x - mean) * rstd * weight + bias over the last extent. mean and rstd are
// outputs, because the gradient reads them (Ba, Kiros, Hinton 2016, "Layer Normalization").
#ifndef STAGECOACH_OPERATIONS_NORMS_LAYER_NORM_H_
#define STAGECOACH_OPERATIONS_NORMS_LAYER_NORM_H_

#include "operations/attributes.h"

namespace stagecoach {

struct LayerNormAttributes {
  double epsilon = 1e-5;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

struct LayerNormGradientAttributes {
  bool residual = false;  // adds the last input to the gradient before the one rounding
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("residual", residual);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_NORMS_LAYER_NORM_H_
