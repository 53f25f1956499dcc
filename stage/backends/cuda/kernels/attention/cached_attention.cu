// A thread an element of keys and values; then a block a row and head. The block takes its history
// a tile at a time and keeps the sum of values in shared memory, scaled to the largest score so
// far. A row's sums depend on its own history alone.
#include "stage/backends/cuda/kernels/attention/cached_attention.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

constexpr uint32_t kTile = 128;  // ids of a history, and threads of a block
constexpr uint32_t kWarps = kTile / 32;

template <typename T>
__global__ void WriteCacheKernel(CachedAttentionShape s, CachedAttentionArrays<T> a) {
  const int64_t width = s.key_heads * s.head_width, queries = s.heads * s.head_width;
  for (int64_t i = GlobalThread(); i < s.rows * width; i += GlobalThreads()) {
    const int64_t row = i / width, column = i % width, place = a.places[row];
    if (place < 0 || place >= s.pool) continue;
    const T* const key = a.qkv + row * (queries + 2 * width) + queries + column;
    a.keys[place * width + column] = key[0];
    a.values[place * width + column] = key[width];
  }
}

// Where the keys and the values of an id of a history begin.
__device__ __forceinline__ int64_t CachedStart(const CachedAttentionShape& s, int64_t id,
                                               int64_t head) {
  const int64_t row = id < 0 || id >= s.pool ? 0 : id;
  return (row * s.key_heads + head / (s.heads / s.key_heads)) * s.head_width;
}

// scores[t] = query key[t]: a warp a key.
template <typename T>
__device__ void ScoresOfTile(const CachedAttentionShape& s, int64_t head, const int32_t* history,
                             int64_t count, const float* query, const T* keys, float* scores) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t t = warp; t < count; t += kWarps) {
    const T* const key = keys + CachedStart(s, history[t], head);
    float sum = 0.0f;
    for (int64_t i = lane; i < s.head_width; i += 32) sum += query[i] * ToFloat(key[i]);
    sum = WarpSum(sum);
    if (lane == 0) scores[t] = sum;
  }
}

template <typename T>
__global__ void CachedAttentionKernel(CachedAttentionShape s, float scale,
                                      CachedAttentionArrays<T> a) {
  __shared__ float shared[32];
  __shared__ float scores[kTile];
  float* const query = DynamicShared();
  float* const sums = query + s.head_width;
  const int64_t packed = (s.heads + 2 * s.key_heads) * s.head_width;
  for (int64_t unit = blockIdx.x; unit < s.rows * s.heads; unit += gridDim.x) {
    const int64_t row = unit / s.heads, head = unit % s.heads, position = a.positions[row];
    const int64_t seen = position >= 0 && position < s.context ? position + 1 : 0;
    for (int64_t i = threadIdx.x; i < s.head_width; i += kTile) {
      query[i] = scale * ToFloat(a.qkv[row * packed + head * s.head_width + i]);
      sums[i] = 0.0f;
    }
    __syncthreads();
    float largest = -INFINITY, total = 0.0f;
    for (int64_t first = 0; first < seen; first += kTile) {
      const int64_t count = seen - first < kTile ? seen - first : kTile;
      const int32_t* const history = a.history + row * s.context + first;
      ScoresOfTile(s, head, history, count, query, a.keys, scores);
      __syncthreads();
      const bool mine = threadIdx.x < count;
      const float score = mine ? scores[threadIdx.x] : -INFINITY;
      const float next = fmaxf(largest, BlockMax(score, shared));
      const float correction = expf(largest - next), p = mine ? expf(score - next) : 0.0f;
      largest = next;
      scores[threadIdx.x] = p;
      total = total * correction + BlockSum(p, shared);  // a barrier: scores are there
      for (int64_t i = threadIdx.x; i < s.head_width; i += kTile) {
        float sum = sums[i] * correction;
        for (int64_t t = 0; t < count; ++t) {
          sum += scores[t] * ToFloat(a.values[CachedStart(s, history[t], head) + i]);
        }
        sums[i] = sum;
      }
      __syncthreads();  // the next tile writes scores
    }
    T* const out = a.out + unit * s.head_width;
    for (int64_t i = threadIdx.x; i < s.head_width; i += kTile) {
      out[i] = FromFloat<T>(seen > 0 ? sums[i] / total : 0.0f);
    }
    __syncthreads();  // the next unit writes the query
  }
}

}  // namespace

template <typename T>
cudaError_t CachedAttention(cudaStream_t stream, CachedAttentionShape shape,
                            const CachedAttentionArrays<T>& arrays) {
  const int64_t written = shape.rows * shape.key_heads * shape.head_width;
  const cudaError_t error =
      Launch(WriteCacheKernel<T>, ElementLaunch(written), 0, stream, shape, arrays);
  if (error != cudaSuccess) return error;
  LaunchShape launch = RowLaunch(shape.rows * shape.heads, shape.head_width);
  launch.block = kTile;
  const auto shared = static_cast<size_t>(2 * shape.head_width) * sizeof(float);
  return Launch(CachedAttentionKernel<T>, launch, shared, stream, shape,
                1.0f / sqrtf(static_cast<float>(shape.head_width)), arrays);
}

template cudaError_t CachedAttention(cudaStream_t, CachedAttentionShape,
                                     const CachedAttentionArrays<float>&);
template cudaError_t CachedAttention(cudaStream_t, CachedAttentionShape,
                                     const CachedAttentionArrays<Bf16>&);

}  // namespace stagecoach::cuda
