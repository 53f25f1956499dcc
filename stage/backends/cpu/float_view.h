// FloatInput, FloatOutput: the elements of an F32 or BF16 tensor as the kernels want them, as
// floats: F32 in place, BF16 range by range in room that the caller gives (a piece of a thread's
// workspace that stays in its first cache).
// Ownership: the tensor outlives the view.
// Threads:   immutable; concurrent use with different room.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_FLOAT_VIEW_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_FLOAT_VIEW_H_

#include "stage/backends/cpu/vector/kernels.h"
#include "stage/tensor/tensor.h"

namespace stagecoach::cpu {

inline bool IsBfloat16(const Tensor& tensor) { return tensor.dtype() == DType::kBF16; }

class FloatInput {
 public:
  explicit FloatInput(const Tensor& tensor)
      : floats_(IsBfloat16(tensor) ? nullptr : tensor.data<float>()),
        halves_(IsBfloat16(tensor) ? tensor.data<Bfloat16>() : nullptr) {}

  // Elements [first, first + count). `room` holds as many floats; F32 does not use it.
  const float* Read(int64_t first, int64_t count, float* room) const {
    if (floats_ != nullptr) return floats_ + first;
    Widen(halves_ + first, room, count);
    return room;
  }

 private:
  const float* floats_;
  const Bfloat16* halves_;
};

class FloatOutput {
 public:
  explicit FloatOutput(const Tensor& tensor)
      : floats_(IsBfloat16(tensor) ? nullptr : tensor.data<float>()),
        halves_(IsBfloat16(tensor) ? tensor.data<Bfloat16>() : nullptr) {}

  // The address for results from element `first` on: in the tensor itself or in room.
  float* At(int64_t first, float* room) const {
    return floats_ != nullptr ? floats_ + first : room;
  }
  // Call it when the results are there.
  void Finish(int64_t first, int64_t count, const float* room) const {
    if (floats_ == nullptr) Narrow(room, halves_ + first, count);
  }

 private:
  float* floats_;
  Bfloat16* halves_;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_FLOAT_VIEW_H_
