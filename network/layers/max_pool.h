// max_pool of an image (operations/pool.h). No parameters.
#ifndef STAGECOACH_NETWORK_LAYERS_MAX_POOL_H_
#define STAGECOACH_NETWORK_LAYERS_MAX_POOL_H_

#include <cstdint>
#include <vector>

#include "operations/attributes.h"
#include "operations/window.h"

namespace stagecoach {

struct MaxPoolSpec {
  static constexpr const char* kKind = "max_pool";
  // One number, or height and width. Without a stride it is the kernel's.
  std::vector<int64_t> kernel, stride = {}, padding = {};

  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("kernel", kernel, 1, kMaxWindow, 2);
    visit.Counts("stride", stride, 1, kMaxExtent, 2);
    visit.Counts("padding", padding, 0, kMaxExtent, 2);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_MAX_POOL_H_
