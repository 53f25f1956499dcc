// batch_norm over samples and places, channel by channel (the width). Parameters: weight [width], bias [width].
// States: running_mean [width], running_variance [width].
#ifndef STAGECOACH_NETWORK_LAYERS_BATCH_NORM_H_
#define STAGECOACH_NETWORK_LAYERS_BATCH_NORM_H_

#include "network/layer_builder.h"
#include "operations/batch_norm.h"

namespace stagecoach {

struct BatchNormSpec {
  static constexpr const char* kKind = "batch_norm";
  double epsilon = 1e-5;  // added to the variance
  double momentum = 0.1;  // a mini-batch's share of the running averages
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
    visit.Between("momentum", momentum, kMinMomentum, 1);
  }
};

// Its calls, parameters and states, for whatever layer has one inside.
ValueId WriteBatchNorm(const BatchNormSpec& spec, ValueId x, const LayerPlace& place,
                       LayerBuilder& builder);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_BATCH_NORM_H_
