// rms_norm over the width. Parameters: weight [width].
#ifndef STAGECOACH_NETWORK_LAYERS_RMS_NORM_H_
#define STAGECOACH_NETWORK_LAYERS_RMS_NORM_H_

#include "operations/attributes.h"

namespace stagecoach {

struct RmsNormSpec {
  static constexpr const char* kKind = "rms_norm";
  double epsilon = 1e-5;  // added to the mean of the squares
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_RMS_NORM_H_
