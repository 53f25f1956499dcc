// average_pool of an image (operations/pool.h). No parameters.
#ifndef STAGECOACH_NETWORK_LAYERS_AVERAGE_POOL_H_
#define STAGECOACH_NETWORK_LAYERS_AVERAGE_POOL_H_

#include <cstdint>
#include <vector>

#include "operations/attributes.h"
#include "operations/window.h"

namespace stagecoach {

struct AveragePoolSpec {
  static constexpr const char* kKind = "average_pool";
  // One number, or height and width. Without a stride it is the kernel's.
  std::vector<int64_t> kernel, stride = {}, padding = {};
  bool count_padding = false;  // is the padding a part of the mean?
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("kernel", kernel, 1, kMaxWindow, 2);
    visit.Counts("stride", stride, 1, kMaxExtent, 2);
    visit.Counts("padding", padding, 0, kMaxExtent, 2);
    visit.Flag("count_padding", count_padding);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_AVERAGE_POOL_H_
