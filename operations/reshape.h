// reshape: y has the numbers of x in their order, under other extents. If nothing moves, y may take
// x's place.
#ifndef STAGECOACH_OPERATIONS_RESHAPE_H_
#define STAGECOACH_OPERATIONS_RESHAPE_H_

#include <cstdint>
#include <vector>

#include "base/numbers/shape.h"
#include "operations/attributes.h"

namespace stagecoach {

// Upper bound of an extent, as of a flattened image.
inline constexpr int64_t kMaxReshaped = int64_t{1} << 36;

struct ReshapeAttributes {
  std::vector<int64_t> shape;  // of y, of one sample
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("shape", shape, 1, kMaxReshaped, Shape::kMaxRank - 1);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_RESHAPE_H_
