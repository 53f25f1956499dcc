// Optimizers, and the zeroing of gradients behind them: all tensors of a stage in one launch. A
// block has one chunk of one tensor, which it finds in the table; a thread has four neighbours at a
// time. One tensor alone is a table of one, so the bits do not depend on how many are updated
// together.
#include <cfloat>

#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

constexpr int kCount = kPack<float>;

// Calls f(entry, i) for the first index of each of the thread's packs.
template <typename Table, typename F>
__device__ __forceinline__ void ForEachPack(const Table& table, F f) {
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const auto entry = EntryOf(table.entries, table.count, chunk);
    const int64_t first = (chunk - entry.first_chunk) * kUpdateChunk;
    const int64_t end = first + kUpdateChunk < entry.n ? first + kUpdateChunk : entry.n;
    for (int64_t i = first + static_cast<int64_t>(threadIdx.x) * kCount; i < end;
         i += static_cast<int64_t>(blockDim.x) * kCount) {
      f(entry, i);
    }
  }
}

__global__ void FillAllKernel(FillTable table, float value) {
  Floats<kCount> values;
#pragma unroll
  for (int j = 0; j < kCount; ++j) values.at[j] = value;
  ForEachPack(table, [&](const FillEntry& e, int64_t i) {
    StoreFloats(values, e.y, i, 0, e.n, table.wide);
  });
}

__global__ void SgdKernel(UpdateTable table, SgdFactors factors) {
  ForEachPack(table, [&](const UpdateEntry& e, int64_t i) {
    Floats<kCount> value = LoadFloats<kCount>(e.value, i, 0, e.n, table.wide);
    Floats<kCount> update = LoadFloats<kCount>(e.gradient, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) update.at[j] *= factors.gradient_scale;
    if (e.first != nullptr) {
      const Floats<kCount> velocity = LoadFloats<kCount>(e.first, i, 0, e.n, table.wide);
      Floats<kCount> next;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        next.at[j] = factors.momentum * velocity.at[j] + update.at[j];
        update.at[j] =
            factors.nesterov != 0 ? update.at[j] + factors.momentum * next.at[j] : next.at[j];
      }
      StoreFloats(next, e.first, i, 0, e.n, table.wide);
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float w = value.at[j];
      value.at[j] = w - factors.learning_rate * (update.at[j] + e.weight_decay * w);
    }
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

__global__ void AdamWKernel(UpdateTable table, AdamWFactors f) {
  ForEachPack(table, [&](const UpdateEntry& e, int64_t i) {
    Floats<kCount> value = LoadFloats<kCount>(e.value, i, 0, e.n, table.wide);
    const Floats<kCount> gradient = LoadFloats<kCount>(e.gradient, i, 0, e.n, table.wide);
    Floats<kCount> m = LoadFloats<kCount>(e.first, i, 0, e.n, table.wide);
    Floats<kCount> v = LoadFloats<kCount>(e.second, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float g = gradient.at[j] * f.gradient_scale, w = value.at[j];
      m.at[j] = f.beta1 * m.at[j] + (1.0f - f.beta1) * g;
      v.at[j] = f.beta2 * v.at[j] + (1.0f - f.beta2) * g * g;
      const float root = sqrtf(v.at[j] / f.correction2) + f.epsilon;
      value.at[j] = w - f.learning_rate * (m.at[j] / f.correction1 / root + e.weight_decay * w);
    }
    StoreFloats(m, e.first, i, 0, e.n, table.wide);
    StoreFloats(v, e.second, i, 0, e.n, table.wide);
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

__global__ void RmsPropKernel(UpdateTable table, RmsPropFactors f) {
  ForEachPack(table, [&](const UpdateEntry& e, int64_t i) {
    Floats<kCount> value = LoadFloats<kCount>(e.value, i, 0, e.n, table.wide);
    const Floats<kCount> gradient = LoadFloats<kCount>(e.gradient, i, 0, e.n, table.wide);
    Floats<kCount> square = LoadFloats<kCount>(e.first, i, 0, e.n, table.wide);
    Floats<kCount> update;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float g = gradient.at[j] * f.gradient_scale + e.weight_decay * value.at[j];
      square.at[j] = f.decay * square.at[j] + (1.0f - f.decay) * g * g;
      update.at[j] = f.inner_rate * g / (sqrtf(square.at[j] + f.inside) + f.outside);
    }
    StoreFloats(square, e.first, i, 0, e.n, table.wide);
    if (e.second != nullptr) {
      const Floats<kCount> velocity = LoadFloats<kCount>(e.second, i, 0, e.n, table.wide);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        update.at[j] = f.momentum * velocity.at[j] + update.at[j];
      }
      StoreFloats(update, e.second, i, 0, e.n, table.wide);
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) value.at[j] -= f.outer_rate * update.at[j];
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

__global__ void LambDirectionKernel(LambTable table, AdamWFactors f) {
  ForEachPack(table, [&](const LambEntry& e, int64_t i) {
    const Floats<kCount> value = LoadFloats<kCount>(e.value, i, 0, e.n, table.wide);
    Floats<kCount> direction = LoadFloats<kCount>(e.gradient, i, 0, e.n, table.wide);
    Floats<kCount> m = LoadFloats<kCount>(e.m, i, 0, e.n, table.wide);
    Floats<kCount> v = LoadFloats<kCount>(e.v, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float g = direction.at[j] * f.gradient_scale;
      m.at[j] = f.beta1 * m.at[j] + (1.0f - f.beta1) * g;
      v.at[j] = f.beta2 * v.at[j] + (1.0f - f.beta2) * g * g;
      const float root = sqrtf(v.at[j] / f.correction2) + f.epsilon;
      direction.at[j] = m.at[j] / f.correction1 / root + e.weight_decay * value.at[j];
    }
    StoreFloats(m, e.m, i, 0, e.n, table.wide);
    StoreFloats(v, e.v, i, 0, e.n, table.wide);
    StoreFloats(direction, e.gradient, i, 0, e.n, table.wide);
  });
}

// stage/backends/lamb_rate.h.
__device__ __forceinline__ float LambRate(const LambEntry& e, float learning_rate) {
  const double value = e.norms[0], direction = e.norms[1];
  if (e.adapt == 0 || !(value > 0) || !(direction > 0)) return learning_rate;
  const double ratio = sqrt(value) / sqrt(direction);
  if (!(ratio <= FLT_MAX)) return learning_rate;
  const float rate = learning_rate * static_cast<float>(ratio);
  return rate <= FLT_MAX ? rate : learning_rate;
}

__global__ void LambStepKernel(LambTable table, float learning_rate) {
  ForEachPack(table, [&](const LambEntry& e, int64_t i) {
    Floats<kCount> value = LoadFloats<kCount>(e.value, i, 0, e.n, table.wide);
    const Floats<kCount> direction = LoadFloats<kCount>(e.gradient, i, 0, e.n, table.wide);
    const float rate = LambRate(e, learning_rate);
#pragma unroll
    for (int j = 0; j < kCount; ++j) value.at[j] -= rate * direction.at[j];
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

__global__ void AverageKernel(PairTable table, float rate) {
  ForEachPack(table, [&](const PairEntry& e, int64_t i) {
    const Floats<kCount> value = LoadFloats<kCount>(e.first, i, 0, e.n, table.wide);
    Floats<kCount> average = LoadFloats<kCount>(e.second, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kCount; ++j) average.at[j] += rate * (value.at[j] - average.at[j]);
    StoreFloats(average, e.second, i, 0, e.n, table.wide);
  });
}

__global__ void SwapKernel(PairTable table) {
  ForEachPack(table, [&](const PairEntry& e, int64_t i) {
    const Floats<kCount> first = LoadFloats<kCount>(e.first, i, 0, e.n, table.wide);
    const Floats<kCount> second = LoadFloats<kCount>(e.second, i, 0, e.n, table.wide);
    StoreFloats(second, e.first, i, 0, e.n, table.wide);
    StoreFloats(first, e.second, i, 0, e.n, table.wide);
  });
}

template <typename Table>
LaunchShape UpdateLaunch(const Table& table) {
  const int64_t grid = table.chunks < kMaxGrid ? table.chunks : kMaxGrid;
  return {static_cast<uint32_t>(grid), kElementThreads};
}

}  // namespace

cudaError_t FillAll(cudaStream_t stream, const FillTable& table, float value) {
  return Launch(FillAllKernel, UpdateLaunch(table), 0, stream, table, value);
}

cudaError_t Sgd(cudaStream_t stream, const UpdateTable& table, const SgdFactors& factors) {
  return Launch(SgdKernel, UpdateLaunch(table), 0, stream, table, factors);
}

cudaError_t AdamW(cudaStream_t stream, const UpdateTable& table, const AdamWFactors& factors) {
  return Launch(AdamWKernel, UpdateLaunch(table), 0, stream, table, factors);
}

cudaError_t RmsProp(cudaStream_t stream, const UpdateTable& table, const RmsPropFactors& factors) {
  return Launch(RmsPropKernel, UpdateLaunch(table), 0, stream, table, factors);
}

cudaError_t LambDirections(cudaStream_t stream, const LambTable& table,
                           const AdamWFactors& factors) {
  return Launch(LambDirectionKernel, UpdateLaunch(table), 0, stream, table, factors);
}

cudaError_t LambSteps(cudaStream_t stream, const LambTable& table, float learning_rate) {
  return Launch(LambStepKernel, UpdateLaunch(table), 0, stream, table, learning_rate);
}

cudaError_t Average(cudaStream_t stream, const PairTable& table, float rate) {
  return Launch(AverageKernel, UpdateLaunch(table), 0, stream, table, rate);
}

cudaError_t Swap(cudaStream_t stream, const PairTable& table) {
  return Launch(SwapKernel, UpdateLaunch(table), 0, stream, table);
}

}  // namespace stagecoach::cuda
