// Helpers of all convolutions: pieces of scratch, dispatch by type, floats of a tensor.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_ROOM_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_ROOM_H_

#include <cstdint>

#include "stage/backends/cpu/float_view.h"

namespace stagecoach::cpu {

inline constexpr int64_t kFloatBytes = sizeof(float);

// Pieces of a worker's scratch, each aligned as oneDNN prefers.
class Pieces {
 public:
  explicit Pieces(float* next) : next_(next) {}
  float* Take(int64_t floats) {
    float* const piece = next_;
    next_ += Rounded(floats);
    return piece;
  }
  static int64_t Rounded(int64_t floats) { return (floats + 15) / 16 * 16; }

 private:
  float* next_;
};

template <typename F>
void WithTypeOf(const Tensor& tensor, F f) {
  if (IsBfloat16(tensor)) return f(Bfloat16{});
  f(float{});
}

// The tensor's elements as floats: itself, or widened into room.
inline const float* AsFloats(const Tensor& tensor, float* room) {
  return FloatInput(tensor).Read(0, tensor.elements(), room);
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CONVOLUTION_CONVOLUTION_ROOM_H_
