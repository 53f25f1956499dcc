// group_norm over the places of a sample and the channels of a group (operations/group_norm.h). Parameters: weight
// [width], bias [width].
#ifndef STAGECOACH_NETWORK_LAYERS_GROUP_NORM_H_
#define STAGECOACH_NETWORK_LAYERS_GROUP_NORM_H_

#include <cstdint>

#include "operations/group_norm.h"

namespace stagecoach {

inline constexpr int64_t kDefaultNormGroups = 32;

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

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_GROUP_NORM_H_
