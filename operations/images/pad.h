// pad: y[i, j] = x[i - top, j - left], and 0 outside of x. y is [height + top + bottom, width +
// left + right, channels]. A negative number cuts off. The gradient is a pad by the negatives.
#ifndef STAGECOACH_OPERATIONS_IMAGES_PAD_H_
#define STAGECOACH_OPERATIONS_IMAGES_PAD_H_

#include <cstdint>

#include "operations/attributes.h"

namespace stagecoach {

struct PadAttributes {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("top", top, -kMaxExtent);
    visit.Count("bottom", bottom, -kMaxExtent);
    visit.Count("left", left, -kMaxExtent);
    visit.Count("right", right, -kMaxExtent);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_IMAGES_PAD_H_
