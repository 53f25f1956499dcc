// Embedding. The gradient of a token's row is the sum of the rows that named it, by one fixed tree
// with no atomics and no sorting: a block owns a token and reads all ids.
// Cost: min(vocabulary, rows) * rows comparisons, for 50257 tokens and 8192 rows about 70 million,
// and one addition an element.
#include "stage/backends/cuda/kernels/attention/embedding.h"
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

// What a block keeps of one token: which rows are the token's, and what each warp has summed of one
// slab of columns.
constexpr int64_t kMaskRows = 32768;
constexpr uint32_t kWarps = kScanThreads / 32;
template <typename T>
struct TokenRoom {
  uint32_t hits[kMaskRows / 32];
  float sums[kWarps][32 * kPack<T>];
};
constexpr int kAtOnce = 4;  // rows on their way from memory

// The sum of this warp's rows of the part, ascending: those of words warp, warp + 8, ... of the
// mask.
template <typename T>
__device__ Floats<kPack<T>> SumOfWarp(const uint32_t* hits, int64_t words, int64_t part,
                                      int64_t column, EmbeddingShape s, bool wide, const T* dy) {
  constexpr int kCount = kPack<T>;
  Floats<kCount> sum = {};
  for (int64_t word = threadIdx.x / 32; word < words; word += kWarps) {
    uint32_t left = hits[word];
    while (left != 0) {
      Floats<kCount> found[kAtOnce];
      int count = 0;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (left == 0) continue;
        const int64_t row = part + 32 * word + (__ffs(static_cast<int>(left)) - 1);
        found[i] = LoadFloats<kCount>(dy + row * s.width, column, 0, s.width, wide);
        left &= left - 1;
        count = i + 1;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (i >= count) continue;
#pragma unroll
        for (int j = 0; j < kCount; ++j) sum.at[j] += found[i].at[j];
      }
    }
  }
  return sum;
}

// d_token[id] adds the rows of dy whose id it is; none of them lies before `first`. The bytes and
// words of a text are few and some are a fifth of it, so a token's rows are summed by eight warps
// at once, row r by warp r / 32 mod 8, ascending, and the warps' sums in their order: a tree that
// follows from rows and ids alone.
template <typename T>
__device__ void AddRowsOf(int32_t id, int64_t first, EmbeddingShape s, bool wide,
                          const int32_t* ids, const T* dy, float* d_token, TokenRoom<T>& room) {
  constexpr int kCount = kPack<T>;
  constexpr int64_t kSlab = 32 * kCount;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float* const target = d_token + id * s.width;
  for (int64_t part = first / kMaskRows * kMaskRows; part < s.rows; part += kMaskRows) {
    const int64_t rows = s.rows - part < kMaskRows ? s.rows - part : kMaskRows;
    const int64_t words = (rows + kScanThreads - 1) / kScanThreads * kWarps;
    bool found = false;
    for (int64_t word = warp; word < words; word += kWarps) {
      const int64_t row = 32 * word + lane;
      const uint32_t lanes = __ballot_sync(kAllLanes, row < rows && ids[part + row] == id);
      if (lane == 0) room.hits[word] = lanes;
      found |= lanes != 0;
    }
    if (__syncthreads_or(found) == 0) continue;
    for (int64_t slab = 0; slab < s.width; slab += kSlab) {
      const int64_t column = slab + lane * kCount;
      Floats<kCount> sum = {};
      if (column < s.width) sum = SumOfWarp(room.hits, words, part, column, s, wide, dy);
#pragma unroll
      for (int j = 0; j < kCount; ++j) room.sums[warp][lane * kCount + j] = sum.at[j];
      __syncthreads();
      const int64_t mine = slab + threadIdx.x;
      if (threadIdx.x < kSlab && mine < s.width) {
        float total = target[mine];
        for (uint32_t w = 0; w < kWarps; ++w) total += room.sums[w][threadIdx.x];
        target[mine] = total;
      }
      __syncthreads();  // sums and hits are written again
    }
  }
}

// A block a token.
template <typename T>
__global__ void TokenGradientByTokenKernel(EmbeddingShape s, bool wide, const int32_t* ids,
                                           const T* dy, float* d_token) {
  __shared__ TokenRoom<T> room;
  for (int64_t id = blockIdx.x; id < s.vocabulary; id += gridDim.x) {
    AddRowsOf(static_cast<int32_t>(id), 0, s, wide, ids, dy, d_token, room);
  }
}

// A block a row; the first row of a token does all of the token's.
template <typename T>
__global__ void TokenGradientByRowKernel(EmbeddingShape s, bool wide, const int32_t* ids,
                                         const T* dy, float* d_token) {
  __shared__ TokenRoom<T> room;
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const int32_t id = ids[row];
    if (id < 0 || id >= s.vocabulary) __trap();
    bool seen = false;
    for (int64_t start = 0; start < row && !seen; start += kScanThreads) {
      const int64_t earlier = start + threadIdx.x;
      seen = __syncthreads_or(earlier < row && ids[earlier] == id) != 0;
    }
    if (!seen) AddRowsOf(id, row, s, wide, ids, dy, d_token, room);
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
  // Both give the same bits: AddRowsOf's tree.
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
