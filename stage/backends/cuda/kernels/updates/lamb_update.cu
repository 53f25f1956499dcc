#include <cfloat>

#include "stage/backends/cuda/kernels/updates/lamb_update.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void LambDirectionKernel(LambTable table, AdamWFactors f) {
  ForEachPack(table, [&](const LambEntry& e, int64_t i) {
    const Floats<kTablePack> value = LoadFloats<kTablePack>(e.value, i, 0, e.n, table.wide);
    Floats<kTablePack> direction = LoadFloats<kTablePack>(e.gradient, i, 0, e.n, table.wide);
    Floats<kTablePack> m = LoadFloats<kTablePack>(e.m, i, 0, e.n, table.wide);
    Floats<kTablePack> v = LoadFloats<kTablePack>(e.v, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) {
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

// operations/updates/lamb_update.h.
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
    Floats<kTablePack> value = LoadFloats<kTablePack>(e.value, i, 0, e.n, table.wide);
    const Floats<kTablePack> direction = LoadFloats<kTablePack>(e.gradient, i, 0, e.n, table.wide);
    const float rate = LambRate(e, learning_rate);
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) value.at[j] -= rate * direction.at[j];
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

}  // namespace

cudaError_t LambDirections(cudaStream_t stream, const LambTable& table,
                           const AdamWFactors& factors) {
  return Launch(LambDirectionKernel, TableLaunch(table), 0, stream, table, factors);
}

cudaError_t LambSteps(cudaStream_t stream, const LambTable& table, float learning_rate) {
  return Launch(LambStepKernel, TableLaunch(table), 0, stream, table, learning_rate);
}

}  // namespace stagecoach::cuda
