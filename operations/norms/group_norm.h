// group_norm: y = (x - mean) * rstd * weight + bias, for each sample and group of neighbouring
// channels (the last extent). The moments are over the sample's places and the group's channels
// (Wu, He 2018, "Group Normalization").
// Inputs: x, weight and bias (float32 [channels]). Outputs: y, mean and rstd (float32 [groups] a
// sample). y may be x.
//
// group_norm_sums: dy, x, mean, rstd -> for each sample and channel the sums over places of dy *
//   xhat and of dy (float32 [channels] a sample). xhat = (x - mean) * rstd.
// group_norm_input_gradient: dy, x, weight, mean, rstd, both sums -> dx. dx may be dy. With means
//   over the group:
//   g = dy * weight; dx = rstd * (g - mean of g - xhat * mean of g * xhat)
// group_norm_weight_gradient: both sums; adds to d_weight and d_bias their totals over all samples.
#ifndef STAGECOACH_OPERATIONS_NORMS_GROUP_NORM_H_
#define STAGECOACH_OPERATIONS_NORMS_GROUP_NORM_H_

#include <cstdint>

#include "operations/attributes.h"

namespace stagecoach {

struct GroupNormAttributes {
  int64_t groups = 1;  // divides the channels
  double epsilon = 1e-5;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("groups", groups, 1);
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_NORMS_GROUP_NORM_H_
