// Pools of an image (operations/images/pool.h): max_pool, average_pool, global_pool. No parameters.
// Errors: INVALID_ARGUMENT with the field's path in the job.
#ifndef STAGECOACH_NETWORK_LAYERS_POOLS_H_
#define STAGECOACH_NETWORK_LAYERS_POOLS_H_

#include <cstdint>
#include <vector>

#include "operations/attributes.h"
#include "operations/images/window.h"

namespace stagecoach {

struct MaxPoolSpec {
  static constexpr const char* kKind = "max_pool";
  // One number, or height and width. The default stride is the kernel's extent.
  std::vector<int64_t> kernel, stride = {}, padding = {};

  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("kernel", kernel, 1, kMaxWindow, 2);
    visit.Counts("stride", stride, 1, kMaxExtent, 2);
    visit.Counts("padding", padding, 0, kMaxExtent, 2);
  }
};

struct AveragePoolSpec {
  static constexpr const char* kKind = "average_pool";
  // One number, or height and width. The default stride is the kernel's extent.
  std::vector<int64_t> kernel, stride = {}, padding = {};
  bool count_padding = false;  // the padding is a part of the mean
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Counts("kernel", kernel, 1, kMaxWindow, 2);
    visit.Counts("stride", stride, 1, kMaxExtent, 2);
    visit.Counts("padding", padding, 0, kMaxExtent, 2);
    visit.Flag("count_padding", count_padding);
  }
};

// global_pool: the mean over an image, channel by channel; gives [channels].
struct GlobalPoolSpec {
  static constexpr const char* kKind = "global_pool";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_POOLS_H_
