// concatenate: puts its inputs side by side in the last extent. It takes any number of inputs whose
// other extents are equal. The gradient of each input is a slice.
// slice: y = x[..., begin, begin + 1, ..., begin + extent - 1]. Its output has the last extent
// `extent`.
// slice_gradient: dy -> dx of the last extent `whole`, 0 outside of the slice. Its own gradient is
// the slice.
#ifndef STAGECOACH_OPERATIONS_CONCATENATE_H_
#define STAGECOACH_OPERATIONS_CONCATENATE_H_

#include <cstdint>

namespace stagecoach {

struct SliceAttributes {
  int64_t begin = 0, extent = 1;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("begin", begin, 0);
    visit.Count("extent", extent, 1);
  }
};

struct SliceGradientAttributes {
  int64_t begin = 0, whole = 1;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("begin", begin, 0);
    visit.Count("whole", whole, 1);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CONCATENATE_H_
