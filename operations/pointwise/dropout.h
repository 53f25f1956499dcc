// dropout: y = keep ? x / (1 - rate) : 0. Nothing is kept. The gradient is dropout with dy for x,
// which draws the same numbers again.
#ifndef STAGECOACH_OPERATIONS_POINTWISE_DROPOUT_H_
#define STAGECOACH_OPERATIONS_POINTWISE_DROPOUT_H_

#include <cstdint>

namespace stagecoach {

struct DropoutAttributes {
  double rate = 0;
  int64_t draw = 0;       // number of the layer's stream of random numbers
  bool in_place = false;  // y takes the place of x, if no call reads x again
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("rate", rate);
    visit.Count("draw", draw, 0);
    visit.Flag("in_place", in_place);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_POINTWISE_DROPOUT_H_
