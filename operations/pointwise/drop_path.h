// drop_path: y = keep ? x / (1 - rate) : 0, drawn once a sample. So a branch of a residual is left
// out for some samples of a micro-batch (Huang et al. 2016, "Deep Networks with Stochastic Depth").
// Sample i has element i of the stream. Nothing is kept. The gradient is drop_path with dy for x,
// which draws the same numbers again. y may be x.
#ifndef STAGECOACH_OPERATIONS_POINTWISE_DROP_PATH_H_
#define STAGECOACH_OPERATIONS_POINTWISE_DROP_PATH_H_

#include <cstdint>

namespace stagecoach {

struct DropPathAttributes {
  double rate = 0;
  int64_t draw = 0;  // number of the layer's stream of random numbers
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("rate", rate);
    visit.Count("draw", draw, 0);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_POINTWISE_DROP_PATH_H_
