// The gradients of norms over rows by one kernel. With xhat = (x - mean) rstd, or x rstd without a
// mean, and g = dy * weight:
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) + residual,
//   d_weight += the sum of dy * xhat over the rows, d_bias += that of dy.
// A block has a chunk of rows and takes kNormRows of them at a time, so that many loads are under
// way. It reads them from memory for the sums over each row, then from its cache. A thread has the
// same columns of every row and adds their terms, row after row, to its own sums. A second kernel
// adds the sums of the chunks.
// Bits: chunks depend on the shape alone (PlanNormBackward), and roundings are written out, so each
// part has the bits that it has when both are computed at once.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_NORM_BACKWARD_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_NORM_BACKWARD_CUH_

#include "stage/backends/cuda/column_sums.cuh"
#include "stage/backends/cuda/kernels/norms/norm_backward.h"
#include "stage/backends/cuda/packs.cuh"

namespace stagecoach::cuda {

template <typename T>
struct NormChunks {
  NormGradients<T> all;
  int64_t rows_per_chunk, chunks;
  float* sums;  // [chunks, sum_elements] of dy * xhat; behind them those of dy
  int64_t sum_elements;
  bool sums_in_shared;  // until the chunk's last row
};

// Values that all columns of a row share.
struct NormRow {
  int64_t at;
  bool there;  // false: a row of the chunk again, which is read and not used
  float mean, rstd, mean_g, mean_gx;
};

template <bool kCentred>
__device__ __forceinline__ float Xhat(float x, const NormRow& row) {
  return RoundedProduct(kCentred ? x - row.mean : x, row.rstd);
}

// kWide: every row lies on a multiple of 16 bytes and is whole packs.
template <int kCount, bool kWide, typename T>
__device__ __forceinline__ Floats<kCount> LoadColumns(const T* row, int64_t column, int64_t width) {
  if constexpr (kWide) return LoadPack<kCount>(row + column);
  return LoadFloats<kCount>(row, column, 0, width, false);
}

// Every thread of the block calls. shared: 2 * kNormRows * 32 floats.
template <typename T, bool kCentred, bool kWide>
__device__ __forceinline__ void FindRowMeans(const NormGradients<T>& s, NormRow (&rows)[kNormRows],
                                             float* shared) {
  constexpr int kCount = kPack<T>, kSums = kCentred ? 2 : 1;
  float sums[kSums * kNormRows] = {};  // of g * xhat, then of g
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kCount; i < s.width;
       i += static_cast<int64_t>(blockDim.x) * kCount) {
    const Floats<kCount> w = LoadColumns<kCount, kWide>(s.weight, i, s.width);
    Floats<kCount> d[kNormRows], x[kNormRows];
#pragma unroll
    for (int r = 0; r < kNormRows; ++r) {
      d[r] = LoadColumns<kCount, kWide>(s.dy + rows[r].at * s.width, i, s.width);
      x[r] = LoadColumns<kCount, kWide>(s.x + rows[r].at * s.width, i, s.width);
    }
#pragma unroll
    for (int r = 0; r < kNormRows; ++r) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float g = RoundedProduct(d[r].at[j], w.at[j]);  // 0 beyond the row
        sums[r] = MultiplyAdd(g, Xhat<kCentred>(x[r].at[j], rows[r]), sums[r]);
        if constexpr (kCentred) sums[kNormRows + r] += g;
      }
    }
  }
  BlockSums(sums, shared);
#pragma unroll
  for (int r = 0; r < kNormRows; ++r) {
    rows[r].mean_gx = sums[r] / static_cast<float>(s.width);
    if constexpr (kCentred) rows[r].mean_g = sums[kNormRows + r] / static_cast<float>(s.width);
  }
}

// values: x of this row's columns from i on; d: dy.
template <typename T, bool kCentred, bool kWide>
__device__ __forceinline__ void WriteInputGradient(const NormGradients<T>& s, const NormRow& row,
                                                   int64_t i, const Floats<kPack<T>>& w,
                                                   const Floats<kPack<T>>& d,
                                                   const Floats<kPack<T>>& residual,
                                                   Floats<kPack<T>> values) {
#pragma unroll
  for (int j = 0; j < kPack<T>; ++j) {
    const float g = RoundedProduct(d.at[j], w.at[j]);
    const float rest =
        MultiplyAdd(-Xhat<kCentred>(values.at[j], row), row.mean_gx, kCentred ? g - row.mean_g : g);
    values.at[j] = s.residual != nullptr ? MultiplyAdd(row.rstd, rest, residual.at[j])
                                         : RoundedProduct(row.rstd, rest);
  }
  T* const dx = s.dx + row.at * s.width;
  if constexpr (kWide) {
    StorePack(values, dx + i);
  } else {
    StoreFloats(values, dx, i, 0, s.width, false);
  }
}

// Adds these rows' terms to the sums of a pack of columns, in the order of the rows.
template <typename T, bool kCentred>
__device__ __forceinline__ void AddColumns(const NormRow (&rows)[kNormRows],
                                           const Floats<kPack<T>> (&d)[kNormRows],
                                           const Floats<kPack<T>> (&x)[kNormRows], bool fresh,
                                           float* d_weight, float* d_bias) {
  constexpr int kCount = kPack<T>;
  Floats<kCount> weight = {}, bias = {};
  if (!fresh) {
    weight = LoadPack<kCount>(d_weight);
    if constexpr (kCentred) bias = LoadPack<kCount>(d_bias);
  }
#pragma unroll
  for (int r = 0; r < kNormRows; ++r) {
    if (!rows[r].there) continue;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      weight.at[j] = MultiplyAdd(d[r].at[j], Xhat<kCentred>(x[r].at[j], rows[r]), weight.at[j]);
      if constexpr (kCentred) bias.at[j] += d[r].at[j];
    }
  }
  StorePack(weight, d_weight);
  if constexpr (kCentred) StorePack(bias, d_bias);
}

template <typename T, bool kCentred, NormPart kPart, bool kWide>
__global__ void __launch_bounds__(kMaxRowThreads) NormBackwardKernel(NormChunks<T> c) {
  constexpr int kCount = kPack<T>;
  constexpr bool kInput = kPart != NormPart::kWeight, kWeight = kPart != NormPart::kInput;
  __shared__ float shared[2 * kNormRows * 32];
  const NormGradients<T>& s = c.all;
  const int64_t first = blockIdx.x * c.rows_per_chunk;
  const int64_t end = first + c.rows_per_chunk < s.rows ? first + c.rows_per_chunk : s.rows;
  float* const partial = c.sums + blockIdx.x * c.sum_elements;
  float* const partial_bias = partial + c.chunks * c.sum_elements;
  float* const sums = c.sums_in_shared ? DynamicShared() : partial;
  float* const bias = c.sums_in_shared ? sums + c.sum_elements : partial_bias;
  const int64_t start = static_cast<int64_t>(threadIdx.x) * kCount;
  const int64_t stride = static_cast<int64_t>(blockDim.x) * kCount;
  for (int64_t row = first; row < end; row += kNormRows) {
    NormRow rows[kNormRows];
#pragma unroll
    for (int r = 0; r < kNormRows; ++r) {
      rows[r].there = row + r < end;
      rows[r].at = rows[r].there ? row + r : end - 1;
      rows[r].mean = kCentred ? s.mean[rows[r].at] : 0.0f;
      rows[r].rstd = s.rstd[rows[r].at];
    }
    if constexpr (kInput) FindRowMeans<T, kCentred, kWide>(s, rows, shared);
    for (int64_t i = start; i < s.width; i += stride) {
      Floats<kCount> d[kNormRows], x[kNormRows], residual[kNormRows] = {};
#pragma unroll
      for (int r = 0; r < kNormRows; ++r) {
        const int64_t at = rows[r].at * s.width;
        d[r] = LoadColumns<kCount, kWide>(s.dy + at, i, s.width);
        x[r] = LoadColumns<kCount, kWide>(s.x + at, i, s.width);
        if (!kInput || s.residual == nullptr) continue;
        residual[r] = LoadColumns<kCount, kWide>(s.residual + at, i, s.width);
      }
      if constexpr (kInput) {
        const Floats<kCount> w = LoadColumns<kCount, kWide>(s.weight, i, s.width);
#pragma unroll
        for (int r = 0; r < kNormRows; ++r) {
          if (!rows[r].there) continue;
          WriteInputGradient<T, kCentred, kWide>(s, rows[r], i, w, d[r], residual[r], x[r]);
        }
      }
      if constexpr (kWeight) AddColumns<T, kCentred>(rows, d, x, row == first, sums + i, bias + i);
    }
  }
  if constexpr (kWeight) {
    if (!c.sums_in_shared) return;
    // Each thread stores its own columns.
    for (int64_t i = start; i < s.width; i += stride) {
      StorePack(LoadPack<kCount>(sums + i), partial + i);
      if constexpr (kCentred) StorePack(LoadPack<kCount>(bias + i), partial_bias + i);
    }
  }
}

// scratch: PlanNormBackward(rows, width, 2 if kCentred or else 1, kPack<T>); not used by kInput.
template <typename T, bool kCentred, NormPart kPart>
cudaError_t NormBackward(cudaStream_t stream, const NormGradients<T>& s, float* scratch) {
  constexpr bool kSums = kPart != NormPart::kInput;
  const NormBackwardPlan plan = PlanNormBackward(s.rows, s.width, kCentred ? 2 : 1, kPack<T>);
  const NormChunks<T> chunks = {s,
                                kSums ? plan.rows_per_chunk : kNormRows,
                                plan.chunks,
                                scratch,
                                plan.sum_elements,
                                plan.shared_bytes != 0};
  const bool wide = RowsAligned<T>(s.width, s.dy, s.x, s.weight, s.residual, s.dx);
  const cudaError_t error =
      Launch(wide ? NormBackwardKernel<T, kCentred, kPart, true>
                  : NormBackwardKernel<T, kCentred, kPart, false>,
             kSums ? plan.chunk : plan.few, kSums ? plan.shared_bytes : 0, stream, chunks);
  if (error != cudaSuccess || !kSums) return error;
  const ColumnTotals totals = {s.width, plan.sum_elements, plan.chunks};
  return Launch(ColumnTotalKernel<float>, plan.total, 0, stream, totals, scratch, s.d_weight,
                s.d_bias);
}

template <typename T, bool kCentred>
cudaError_t NormBackward(cudaStream_t stream, NormPart part, const NormGradients<T>& s,
                         float* scratch) {
  switch (part) {
    case NormPart::kBoth:
      return NormBackward<T, kCentred, NormPart::kBoth>(stream, s, scratch);
    case NormPart::kInput:
      return NormBackward<T, kCentred, NormPart::kInput>(stream, s, scratch);
    case NormPart::kWeight:
      break;
  }
  return NormBackward<T, kCentred, NormPart::kWeight>(stream, s, scratch);
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_NORMS_NORM_BACKWARD_CUH_
