// Embedding. The gradient of a token's row is the sum of the rows that named it, in ascending
// order, with no atomics and no sorting: a block owns a token and reads all ids.
// Cost: min(vocabulary, rows) * rows comparisons, for 50257 tokens and 8192 rows about 70 million,
// and one addition an element.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

constexpr uint32_t kScanThreads = 256;

__global__ void EmbeddingKernel(EmbeddingShape s, const int32_t* ids, const float* token,
                                const float* position, float* y) {
  const int64_t n = s.rows * s.width;
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) {
    const int64_t row = i / s.width, column = i % s.width;
    const int64_t id = ids[row];
    if (id < 0 || id >= s.vocabulary) __trap();
    y[i] = token[id * s.width + column] + position[row % s.context * s.width + column];
  }
}

// d_token[id] adds the rows of dy in [first, rows) whose id it is, ascending. The block looks at
// 256 ids at a time; `hits` then tells every thread which of them count.
__device__ void AddRowsOf(int32_t id, int64_t first, EmbeddingShape s, const int32_t* ids,
                          const float* dy, float* d_token, uint32_t* hits) {
  for (int64_t start = first; start < s.rows; start += kScanThreads) {
    const int64_t row = start + threadIdx.x;
    const bool hit = row < s.rows && ids[row] == id;
    const uint32_t lanes = __ballot_sync(kAllLanes, hit);
    if (threadIdx.x % 32 == 0) hits[threadIdx.x / 32] = lanes;
    __syncthreads();
    uint32_t any = 0;
    for (uint32_t warp = 0; warp < kScanThreads / 32; ++warp) any |= hits[warp];
    if (any != 0) {
      for (int64_t column = threadIdx.x; column < s.width; column += blockDim.x) {
        float sum = d_token[id * s.width + column];
        for (uint32_t warp = 0; warp < kScanThreads / 32; ++warp) {
          for (uint32_t left = hits[warp]; left != 0; left &= left - 1) {
            const int64_t source = start + 32 * warp + (__ffs(static_cast<int>(left)) - 1);
            sum += dy[source * s.width + column];
          }
        }
        d_token[id * s.width + column] = sum;
      }
    }
    __syncthreads();  // hits are written again
  }
}

// A block a token.
__global__ void TokenGradientByTokenKernel(EmbeddingShape s, const int32_t* ids, const float* dy,
                                           float* d_token) {
  __shared__ uint32_t hits[kScanThreads / 32];
  for (int64_t id = blockIdx.x; id < s.vocabulary; id += gridDim.x) {
    AddRowsOf(static_cast<int32_t>(id), 0, s, ids, dy, d_token, hits);
  }
}

// A block a row; the first row of a token does all of the token's.
__global__ void TokenGradientByRowKernel(EmbeddingShape s, const int32_t* ids, const float* dy,
                                         float* d_token) {
  __shared__ uint32_t hits[kScanThreads / 32];
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const int32_t id = ids[row];
    if (id < 0 || id >= s.vocabulary) __trap();
    bool seen = false;
    for (int64_t start = 0; start < row && !seen; start += kScanThreads) {
      const int64_t earlier = start + threadIdx.x;
      seen = __syncthreads_or(earlier < row && ids[earlier] == id) != 0;
    }
    if (!seen) AddRowsOf(id, row, s, ids, dy, d_token, hits);
  }
}

__global__ void PositionGradientKernel(EmbeddingShape s, const float* dy, float* d_position) {
  const int64_t n = s.context * s.width;
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) {
    const int64_t position = i / s.width, column = i % s.width;
    float sum = d_position[i];
    for (int64_t row = position; row < s.rows; row += s.context) {
      sum += dy[row * s.width + column];
    }
    d_position[i] = sum;
  }
}

}  // namespace

cudaError_t Embedding(cudaStream_t stream, EmbeddingShape shape, const int32_t* ids,
                      const float* token, const float* position, float* y) {
  return Launch(EmbeddingKernel, ElementLaunch(shape.rows * shape.width), 0, stream, shape, ids,
                token, position, y);
}

cudaError_t EmbeddingBackward(cudaStream_t stream, EmbeddingShape shape, const int32_t* ids,
                              const float* dy, float* d_token, float* d_position) {
  // Both give the same bits: a token's rows in ascending order.
  const bool by_token = shape.vocabulary <= shape.rows;
  LaunchShape launch = RowLaunch(by_token ? shape.vocabulary : shape.rows, shape.width);
  launch.block = kScanThreads;
  const cudaError_t error = Launch(by_token ? TokenGradientByTokenKernel : TokenGradientByRowKernel,
                                   launch, 0, stream, shape, ids, dy, d_token);
  if (error != cudaSuccess) return error;
  return Launch(PositionGradientKernel, ElementLaunch(shape.context * shape.width), 0, stream,
                shape, dy, d_position);
}

}  // namespace stagecoach::cuda
