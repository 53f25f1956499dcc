// A thread a pair; values, where y is not x, a thread two of them.
#include "stage/backends/cuda/kernels/attention/rotary.h"
#include "stage/backends/cuda/kernels/attention/row_positions.cuh"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

template <typename T>
__global__ void RotaryKernel(RotaryShape s, const int32_t* ids, const float* cosines,
                             const float* sines, const T* x, T* y) {
  const int64_t heads = s.turned_heads + s.value_heads;
  const int64_t row_pairs = (x == y ? s.turned_heads : heads) * s.pairs;
  for (int64_t i = GlobalThread(); i < s.rows * row_pairs; i += GlobalThreads()) {
    const int64_t row = i / row_pairs, head = i % row_pairs / s.pairs, pair = i % s.pairs;
    const int64_t start = (row * heads + head) * 2 * s.pairs;
    const int64_t at_u = start + (s.interleaved ? 2 * pair : pair);
    const int64_t at_v = s.interleaved ? at_u + 1 : at_u + s.pairs;
    if (head >= s.turned_heads) {
      y[at_u] = x[at_u];
      y[at_v] = x[at_v];
      continue;
    }
    const int64_t angle = PositionOf(row, ids, s.positions) * s.pairs + pair;
    const float u = ToFloat(x[at_u]), v = ToFloat(x[at_v]);
    const float cosine = cosines[angle], sine = sines[angle];
    y[at_u] = FromFloat<T>(u * cosine - v * sine);
    y[at_v] = FromFloat<T>(u * sine + v * cosine);
  }
}

}  // namespace

template <typename T>
cudaError_t Rotary(cudaStream_t stream, RotaryShape shape, const int32_t* ids, const float* cosines,
                   const float* sines, const T* x, T* y) {
  const int64_t heads = shape.turned_heads + (x == y ? 0 : shape.value_heads);
  return Launch(RotaryKernel<T>, ElementLaunch(shape.rows * heads * shape.pairs), 0, stream, shape,
                ids, cosines, sines, x, y);
}

template cudaError_t Rotary(cudaStream_t, RotaryShape, const int32_t*, const float*, const float*,
                            const float*, float*);
template cudaError_t Rotary(cudaStream_t, RotaryShape, const int32_t*, const float*, const float*,
                            const Bf16*, Bf16*);

}  // namespace stagecoach::cuda
