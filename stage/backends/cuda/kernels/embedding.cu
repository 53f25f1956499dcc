// Embedding. The gradient of a token's row is the sum of the rows that named it, in ascending
// order, with no atomics and no sorting: a block owns a token and reads all ids.
// Cost: min(vocabulary, rows) * rows comparisons, for 50257 tokens and 8192 rows about 70 million,
// and one addition an element.
#include "stage/backends/cuda/kernels/embedding.h"

#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {
namespace {

constexpr uint32_t kScanThreads = 256;

template <typename T>
__global__ void EmbeddingKernel(EmbeddingShape s, bool wide, const int32_t* ids, const T* token,
                                const T* position, T* y) {
  constexpr int kCount = kPack<T>;
  const int64_t row_packs = (s.width + kCount - 1) / kCount;
  for (int64_t p = GlobalThread(); p < s.rows * row_packs; p += GlobalThreads()) {
    const int64_t row = p / row_packs, column = p % row_packs * kCount;
    const int64_t id = ids[row];
    if (id < 0 || id >= s.vocabulary) __trap();
    Floats<kCount> values = LoadFloats<kCount>(token + id * s.width, column, 0, s.width, wide);
    if (position != nullptr) {
      const Floats<kCount> added =
          LoadFloats<kCount>(position + row % s.context * s.width, column, 0, s.width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) values.at[j] += added.at[j];
    }
    StoreFloats(values, y + row * s.width, column, 0, s.width, wide);
  }
}

// d_token[id] adds the rows of dy in [first, rows) whose id it is, ascending. The block looks at
// 256 ids at a time; `hits` then tells every thread which of them count.
template <typename T>
__device__ void AddRowsOf(int32_t id, int64_t first, EmbeddingShape s, bool wide,
                          const int32_t* ids, const T* dy, float* d_token, uint32_t* hits) {
  constexpr int kCount = kPack<T>;
  float* const target = d_token + id * s.width;
  for (int64_t start = first; start < s.rows; start += kScanThreads) {
    const int64_t row = start + threadIdx.x;
    const bool hit = row < s.rows && ids[row] == id;
    const uint32_t lanes = __ballot_sync(kAllLanes, hit);
    if (threadIdx.x % 32 == 0) hits[threadIdx.x / 32] = lanes;
    __syncthreads();
    uint32_t any = 0;
    for (uint32_t warp = 0; warp < kScanThreads / 32; ++warp) any |= hits[warp];
    if (any != 0) {
      for (int64_t column = threadIdx.x * kCount; column < s.width;
           column += kScanThreads * kCount) {
        Floats<kCount> sum = LoadFloats<kCount>(target, column, 0, s.width, wide);
        for (uint32_t warp = 0; warp < kScanThreads / 32; ++warp) {
          for (uint32_t left = hits[warp]; left != 0; left &= left - 1) {
            const int64_t source = start + 32 * warp + (__ffs(static_cast<int>(left)) - 1);
            const Floats<kCount> added =
                LoadFloats<kCount>(dy + source * s.width, column, 0, s.width, wide);
#pragma unroll
            for (int j = 0; j < kCount; ++j) sum.at[j] += added.at[j];
          }
        }
        StoreFloats(sum, target, column, 0, s.width, wide);
      }
    }
    __syncthreads();  // hits are written again
  }
}

// A block a token.
template <typename T>
__global__ void TokenGradientByTokenKernel(EmbeddingShape s, bool wide, const int32_t* ids,
                                           const T* dy, float* d_token) {
  __shared__ uint32_t hits[kScanThreads / 32];
  for (int64_t id = blockIdx.x; id < s.vocabulary; id += gridDim.x) {
    AddRowsOf(static_cast<int32_t>(id), 0, s, wide, ids, dy, d_token, hits);
  }
}

// A block a row; the first row of a token does all of the token's.
template <typename T>
__global__ void TokenGradientByRowKernel(EmbeddingShape s, bool wide, const int32_t* ids,
                                         const T* dy, float* d_token) {
  __shared__ uint32_t hits[kScanThreads / 32];
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const int32_t id = ids[row];
    if (id < 0 || id >= s.vocabulary) __trap();
    bool seen = false;
    for (int64_t start = 0; start < row && !seen; start += kScanThreads) {
      const int64_t earlier = start + threadIdx.x;
      seen = __syncthreads_or(earlier < row && ids[earlier] == id) != 0;
    }
    if (!seen) AddRowsOf(id, row, s, wide, ids, dy, d_token, hits);
  }
}

template <typename T>
__global__ void PositionGradientKernel(EmbeddingShape s, bool wide, const T* dy,
                                       float* d_position) {
  constexpr int kCount = kPack<T>;
  const int64_t row_packs = (s.width + kCount - 1) / kCount;
  for (int64_t p = GlobalThread(); p < s.context * row_packs; p += GlobalThreads()) {
    const int64_t position = p / row_packs, column = p % row_packs * kCount;
    float* const target = d_position + position * s.width;
    Floats<kCount> sum = LoadFloats<kCount>(target, column, 0, s.width, wide);
#pragma unroll 4
    for (int64_t row = position; row < s.rows; row += s.context) {
      const Floats<kCount> added = LoadFloats<kCount>(dy + row * s.width, column, 0, s.width, wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum.at[j] += added.at[j];
    }
    StoreFloats(sum, target, column, 0, s.width, wide);
  }
}

}  // namespace

template <typename T>
cudaError_t Embedding(cudaStream_t stream, EmbeddingShape shape, const int32_t* ids, const T* token,
                      const T* position, T* y) {
  const int64_t row_packs = (shape.width + kPack<T> - 1) / kPack<T>;
  return Launch(EmbeddingKernel<T>, ElementLaunch(shape.rows * row_packs), 0, stream, shape,
                RowsAligned<T>(shape.width, token, position, y), ids, token, position, y);
}

template <typename T>
cudaError_t EmbeddingBackward(cudaStream_t stream, EmbeddingShape shape, const int32_t* ids,
                              const T* dy, float* d_token, float* d_position) {
  // Both give the same bits: a token's rows in ascending order.
  const bool by_token = shape.vocabulary <= shape.rows;
  const bool wide = RowsAligned<T>(shape.width, dy, d_token, d_position);
  LaunchShape launch = RowLaunch(by_token ? shape.vocabulary : shape.rows, shape.width);
  launch.block = kScanThreads;
  const cudaError_t error =
      Launch(by_token ? TokenGradientByTokenKernel<T> : TokenGradientByRowKernel<T>, launch, 0,
             stream, shape, wide, ids, dy, d_token);
  if (error != cudaSuccess || d_position == nullptr) return error;
  const int64_t row_packs = (shape.width + kPack<T> - 1) / kPack<T>;
  return Launch(PositionGradientKernel<T>, ElementLaunch(shape.context * row_packs), 0, stream,
                shape, wide, dy, d_position);
}

#define STAGECOACH_INSTANTIATE(T)                                                                  \
  template cudaError_t Embedding(cudaStream_t, EmbeddingShape, const int32_t*, const T*, const T*, \
                                 T*);                                                              \
  template cudaError_t EmbeddingBackward(cudaStream_t, EmbeddingShape, const int32_t*, const T*,   \
                                         float*, float*)
STAGECOACH_INSTANTIATE(float);
STAGECOACH_INSTANTIATE(Bf16);
#undef STAGECOACH_INSTANTIATE

}  // namespace stagecoach::cuda
