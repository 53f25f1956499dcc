// Pools of images [height, width, channels], channel by channel (operations/images/window.h):
//
// max_pool: x -> y, choice. `choice` (ids, as y) is the place of the largest number in the window,
//   counted row by row from 0. Of equals it is the first. A NaN comes before all else. The padding
//   is never chosen.
// max_pool_gradient: dy, choice -> dx.
// average_pool: x -> y, the sum over the window divided by its size. Without count_padding it is
//   divided by the size of the part that lies in the image.
// average_pool_gradient: dy -> dx.
// global_average_pool: x -> y [channels], the mean over the image.
// global_average_pool_gradient: dy [channels] -> dx.
//
// In a gradient, one element of dx may get shares from several places. They are summed in ascending
// order of the places, row by row, and rounded once.
#ifndef STAGECOACH_OPERATIONS_IMAGES_POOL_H_
#define STAGECOACH_OPERATIONS_IMAGES_POOL_H_

#include "operations/images/window.h"

namespace stagecoach {

struct PoolSteps {
  Plane window{2, 2}, stride{2, 2}, padding{0, 0};  // padding: half of the window at most
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("window_height", window.height, 1, kMaxWindow);
    visit.Count("window_width", window.width, 1, kMaxWindow);
    visit.Count("stride_height", stride.height, 1);
    visit.Count("stride_width", stride.width, 1);
    visit.Count("padding_height", padding.height, 0, window.height / 2);
    visit.Count("padding_width", padding.width, 0, window.width / 2);
  }
};

struct MaxPoolAttributes {
  PoolSteps steps;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    steps.Visit(visit);
  }
};

struct MaxPoolGradientAttributes {
  PoolSteps steps;
  Plane image{1, 1};  // extents of x
  template <typename Visitor>
  void Visit(Visitor& visit) {
    steps.Visit(visit);
    visit.Count("image_height", image.height, 1);
    visit.Count("image_width", image.width, 1);
  }
};

struct AveragePoolAttributes {
  PoolSteps steps;
  bool count_padding = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    steps.Visit(visit);
    visit.Flag("count_padding", count_padding);
  }
};

struct AveragePoolGradientAttributes {
  PoolSteps steps;
  bool count_padding = false;
  Plane image{1, 1};
  template <typename Visitor>
  void Visit(Visitor& visit) {
    steps.Visit(visit);
    visit.Flag("count_padding", count_padding);
    visit.Count("image_height", image.height, 1);
    visit.Count("image_width", image.width, 1);
  }
};

struct GlobalAveragePoolGradientAttributes {
  Plane image{1, 1};
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("image_height", image.height, 1);
    visit.Count("image_width", image.width, 1);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_IMAGES_POOL_H_
