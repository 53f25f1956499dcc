// A tensor's description for cuDNN: a view, in any order of elements.
// Units: elements.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TENSOR_LAYOUT_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TENSOR_LAYOUT_H_

#include <array>
#include <cstdint>

namespace stagecoach::cudnn {

struct TensorLayout {
  std::array<int64_t, 4> dims{}, strides{};
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

inline int64_t ElementsOf(const TensorLayout& layout) {
  return layout.dims[0] * layout.dims[1] * layout.dims[2] * layout.dims[3];
}

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TENSOR_LAYOUT_H_
