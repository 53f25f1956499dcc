// Norms: layer_norm and rms_norm over the last dimension, group_norm and batch_norm of an image.
#ifndef STAGECOACH_NETWORK_LAYERS_NORMS_H_
#define STAGECOACH_NETWORK_LAYERS_NORMS_H_

#include <cstdint>

#include "network/layer_builder.h"
#include "operations/attributes.h"
#include "operations/norms/batch_norm.h"
#include "operations/norms/group_norm.h"

namespace stagecoach {

// layer_norm over the width. Parameters: weight [width], bias [width].
struct LayerNormSpec {
  static constexpr const char* kKind = "layer_norm";
  double epsilon = 1e-5;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

// rms_norm over the width. Parameters: weight [width].
struct RmsNormSpec {
  static constexpr const char* kKind = "rms_norm";
  double epsilon = 1e-5;  // added to the mean of the squares
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

inline constexpr int64_t kDefaultNormGroups = 32;

// group_norm over the places of a sample and the channels of a group
// (operations/norms/group_norm.h). Parameters: weight [width], bias [width].
struct GroupNormSpec {
  static constexpr const char* kKind = "group_norm";
  int64_t groups = kDefaultNormGroups;  // divides the width
  double epsilon = 1e-5;                // added to the variance
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("groups", groups, 1);
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

// batch_norm over samples and places, channel by channel (the width).
// Parameters: weight [width], bias [width]. States: running_mean [width], running_variance [width].
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

// Writes its calls, parameters and states, also inside other layers.
ValueId WriteBatchNorm(const BatchNormSpec& spec, ValueId x, const LayerPlace& place,
                       LayerBuilder& builder);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_NORMS_H_
