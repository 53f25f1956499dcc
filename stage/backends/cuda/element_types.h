// The element type of an operation, from its tensors.
// Errors:    mixed types are our own bug: CHECK with the operation's name.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_ELEMENT_TYPES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_ELEMENT_TYPES_H_

#include <initializer_list>

#include "base/errors/check.h"
#include "stage/backends/cuda/device_math.h"
#include "stage/tensor/tensor.h"

namespace stagecoach::cuda {

// CHECKs that all valid tensors have this type.
inline void CheckType(const char* what, DType type, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors) {
    CHECK(!tensor->valid() || tensor->dtype() == type)
        << what << " of " << DTypeName(type) << " was given " << DTypeName(tensor->dtype());
  }
}

// The one type of these tensors, F32 or BF16; the first one must be there.
inline DType TypeOf(const char* what, std::initializer_list<const Tensor*> tensors) {
  const DType type = (*tensors.begin())->dtype();
  CHECK(type == DType::kF32 || type == DType::kBF16) << what << " of " << DTypeName(type);
  CheckType(what, type, tensors);
  return type;
}

// Calls f with a value of the kernels' type for `type`.
template <typename F>
auto WithType(DType type, F f) {
  return type == DType::kBF16 ? f(Bf16{}) : f(float{});
}

template <typename T>
T* DataOrNull(const Tensor& tensor) {
  return tensor.valid() ? tensor.data<T>() : nullptr;
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_ELEMENT_TYPES_H_
