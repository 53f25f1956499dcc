#include "stage/backends/cuda/kernels/updates/adafactor_update.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

__device__ __forceinline__ double SquareOf(float gradient, const AdafactorFactors& f) {
  const double g = gradient * f.gradient_scale;
  return g * g;
}

__device__ __forceinline__ float Moved(float mean, double square, const AdafactorFactors& f) {
  return f.decay * mean + f.rest * (static_cast<float>(square) + f.epsilon1);
}

// A warp a row.
__global__ void FactorRowsKernel(AdafactorTable table, AdafactorFactors f) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const AdafactorEntry e = EntryOf(table.entries, table.count, chunk);
    const int64_t first = (chunk - e.first_chunk) * kFactorRows, all = e.n / e.columns;
    const int64_t end = first + kFactorRows < all ? first + kFactorRows : all;
    for (int64_t row = first + warp; row < end; row += warps) {
      const float* const g = e.gradient + row * e.columns;
      double sum = 0;
      for (int64_t j = lane; j < e.columns; j += 32) sum += SquareOf(g[j], f);
      sum = WarpSum(sum);
      if (lane == 0) e.row[row] = Moved(e.row[row], sum / static_cast<double>(e.columns), f);
    }
  }
}

// A lane a column; each warp has every eighth row.
__global__ void FactorColumnsKernel(AdafactorTable table, AdafactorFactors f) {
  __shared__ double shared[kElementThreads];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const AdafactorEntry e = EntryOf(table.entries, table.count, chunk);
    const int64_t groups = (e.columns + kFactorColumns - 1) / kFactorColumns;
    const int64_t matrix = (chunk - e.first_chunk) / groups;
    const int64_t column = (chunk - e.first_chunk) % groups * kFactorColumns + lane;
    const float* const g = e.gradient + matrix * e.rows * e.columns + column;
    double sum = 0;
    if (column < e.columns) {
      for (int64_t i = warp; i < e.rows; i += warps) sum += SquareOf(g[i * e.columns], f);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (warp == 0 && column < e.columns) {
      for (unsigned w = 1; w < warps; ++w) sum += shared[w * 32 + lane];
      float& mean = e.column[matrix * e.columns + column];
      mean = Moved(mean, sum / static_cast<double>(e.rows), f);
    }
    __syncthreads();  // the next chunk writes
  }
}

__global__ void FactorMeansKernel(AdafactorTable table) {
  __shared__ double shared[32];
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const AdafactorEntry e = EntryOf(table.entries, table.count, chunk);
    const int64_t matrix = chunk - e.first_chunk;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < e.rows; i += blockDim.x) sum += e.row[matrix * e.rows + i];
    sum = BlockSum(sum, shared);
    if (threadIdx.x == 0) e.means[matrix] = static_cast<float>(sum / static_cast<double>(e.rows));
  }
}

__device__ __forceinline__ float MatrixDirection(const AdafactorEntry& e, float g, int64_t i) {
  const int64_t row = i / e.columns, matrix = row / e.rows;
  const float factor = 1.0f / sqrtf(e.row[row] / e.means[matrix]);
  return g * factor / sqrtf(e.column[matrix * e.columns + i % e.columns]);
}

__global__ void AdafactorDirectionKernel(AdafactorTable table, AdafactorFactors f) {
  ForEachPack(table, [&](const AdafactorEntry& e, int64_t i) {
    Floats<kTablePack> u = LoadFloats<kTablePack>(e.gradient, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) u.at[j] *= f.gradient_scale;
    if (e.row != nullptr) {
#pragma unroll
      for (int j = 0; j < kTablePack; ++j) {
        if (i + j < e.n) u.at[j] = MatrixDirection(e, u.at[j], i + j);
      }
    } else {
      Floats<kTablePack> square = LoadFloats<kTablePack>(e.square, i, 0, e.n, table.wide);
#pragma unroll
      for (int j = 0; j < kTablePack; ++j) {
        const float g = u.at[j];
        square.at[j] = f.decay * square.at[j] + f.rest * (g * g + f.epsilon1);
        u.at[j] = g / sqrtf(square.at[j]);
      }
      StoreFloats(square, e.square, i, 0, e.n, table.wide);
    }
    StoreFloats(u, e.gradient, i, 0, e.n, table.wide);
  });
}

__device__ __forceinline__ double RootMeanSquare(double squares, const AdafactorEntry& e) {
  return sqrt(squares / static_cast<double>(e.n));
}

// operations/updates/adafactor_update.h, ClipOf and ScaleOf.
__device__ __forceinline__ float ClipOf(const AdafactorEntry& e, const AdafactorFactors& f) {
  const double rms = RootMeanSquare(e.norms[1], e);
  return f.clip > 0.0f && rms > f.clip ? static_cast<float>(f.clip / rms) : 1.0f;
}
__device__ __forceinline__ float ScaleOf(const AdafactorEntry& e, const AdafactorFactors& f) {
  if (f.scale_by_parameter == 0) return 1.0f;
  return fmaxf(f.epsilon2, static_cast<float>(RootMeanSquare(e.norms[0], e)));
}

__global__ void AdafactorStepKernel(AdafactorTable table, AdafactorFactors f) {
  ForEachPack(table, [&](const AdafactorEntry& e, int64_t i) {
    Floats<kTablePack> value = LoadFloats<kTablePack>(e.value, i, 0, e.n, table.wide);
    Floats<kTablePack> step = LoadFloats<kTablePack>(e.gradient, i, 0, e.n, table.wide);
    const float clip = ClipOf(e, f), scale = ScaleOf(e, f);
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) step.at[j] *= clip;
    if (e.m != nullptr) {
      const Floats<kTablePack> m = LoadFloats<kTablePack>(e.m, i, 0, e.n, table.wide);
#pragma unroll
      for (int j = 0; j < kTablePack; ++j) {
        step.at[j] = f.beta1 * m.at[j] + (1.0f - f.beta1) * step.at[j];
      }
      StoreFloats(step, e.m, i, 0, e.n, table.wide);
    }
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) {
      const float w = value.at[j];
      value.at[j] = w - f.learning_rate * (scale * step.at[j] + e.weight_decay * w);
    }
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

}  // namespace

cudaError_t FactorRows(cudaStream_t stream, const AdafactorTable& table,
                       const AdafactorFactors& factors) {
  return Launch(FactorRowsKernel, TableLaunch(table), 0, stream, table, factors);
}

cudaError_t FactorColumns(cudaStream_t stream, const AdafactorTable& table,
                          const AdafactorFactors& factors) {
  return Launch(FactorColumnsKernel, TableLaunch(table), 0, stream, table, factors);
}

cudaError_t FactorMeans(cudaStream_t stream, const AdafactorTable& table) {
  return Launch(FactorMeansKernel, TableLaunch(table), 0, stream, table);
}

cudaError_t AdafactorDirections(cudaStream_t stream, const AdafactorTable& table,
                                const AdafactorFactors& factors) {
  return Launch(AdafactorDirectionKernel, TableLaunch(table), 0, stream, table, factors);
}

cudaError_t AdafactorSteps(cudaStream_t stream, const AdafactorTable& table,
                           const AdafactorFactors& factors) {
  return Launch(AdafactorStepKernel, TableLaunch(table), 0, stream, table, factors);
}

}  // namespace stagecoach::cuda
