// upsample: y[i, j] = x[i / height, j / width], the nearest neighbour. So each pixel is repeated
// `height` and `width` times in the two extents.
// upsample_gradient: dy -> dx, the sum over each pixel's repetitions, row by row, rounded once.
#ifndef STAGECOACH_OPERATIONS_IMAGES_UPSAMPLE_H_
#define STAGECOACH_OPERATIONS_IMAGES_UPSAMPLE_H_

#include "operations/images/window.h"

namespace stagecoach {

struct UpsampleAttributes {
  Plane times{2, 2};
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("height", times.height, 1, kMaxWindow);
    visit.Count("width", times.width, 1, kMaxWindow);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_IMAGES_UPSAMPLE_H_
