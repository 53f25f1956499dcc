// An average over windows as a value: the problem for a library, and how the project's tensors look
// to it. Windows of cuDNN are over [samples, channels, height, width]. Its engines that are not
// compiled at run time take images whose channels are outermost; ours are innermost. So ours are
// described as one channel of volumes [height, width, channels]. Windows are one wide in the third
// extent. That has the same memory and the same sums, and no copy.
// Units and shapes: elements.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_PROBLEM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_PROBLEM_H_

#include <array>
#include <cstdint>
#include <utility>

#include "base/numbers/dtype.h"
#include "stage/backends/cuda/cudnn/pool/pool_operands.h"

namespace stagecoach::cudnn {

// The key of the plan cache: nothing else decides about a plan, hence about the bits.
struct PoolProblem {
  PoolPass pass = PoolPass::kForward;
  DType dtype = DType::kF32;  // F32 or BF16; sums are float32
  bool count_padding = false;
  int64_t samples = 0, height = 0, width = 0, channels = 0;
  int64_t places_height = 0, places_width = 0;
  int64_t window_height = 0, window_width = 0;
  int64_t stride_height = 1, stride_width = 1, padding_height = 0, padding_width = 0;

  friend bool operator==(const PoolProblem&, const PoolProblem&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PoolProblem& p) {
    return H::combine(std::move(h), p.pass, p.dtype, p.count_padding, p.samples, p.height, p.width,
                      p.channels, p.places_height, p.places_width, p.window_height, p.window_width,
                      p.stride_height, p.stride_width, p.padding_height, p.padding_width);
  }
};
PoolProblem ProblemOf(const AveragePoolArgs& args);

// Whether each element of the image lies in one window, and no window reaches beyond the image.
bool Tiles(const PoolProblem& problem);

// Layout of a graph's tensor: sample, the one channel, row, column, our channel.
struct VolumeLayout {
  std::array<int64_t, 5> dims{}, strides{};
  int64_t elements() const { return dims[0] * strides[0]; }
  friend bool operator==(const VolumeLayout&, const VolumeLayout&) = default;
};
struct PoolLayouts {
  VolumeLayout image, places;
};
PoolLayouts LayoutsOf(const PoolProblem& problem);

// How the window moves over a volume.
struct VolumeWindow {
  std::array<int64_t, 3> size{}, stride{}, padding{};
};
VolumeWindow WindowOf(const PoolProblem& problem);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_PROBLEM_H_
