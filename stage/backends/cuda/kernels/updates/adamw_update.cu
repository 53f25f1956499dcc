#include "stage/backends/cuda/kernels/updates/adamw_update.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void AdamWKernel(UpdateTable table, AdamWFactors f) {
  ForEachPack(table, [&](const UpdateEntry& e, int64_t i) {
    Floats<kTablePack> value = LoadFloats<kTablePack>(e.value, i, 0, e.n, table.wide);
    const Floats<kTablePack> gradient = LoadFloats<kTablePack>(e.gradient, i, 0, e.n, table.wide);
    Floats<kTablePack> m = LoadFloats<kTablePack>(e.first, i, 0, e.n, table.wide);
    Floats<kTablePack> v = LoadFloats<kTablePack>(e.second, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) {
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

}  // namespace

cudaError_t AdamW(cudaStream_t stream, const UpdateTable& table, const AdamWFactors& factors) {
  return Launch(AdamWKernel, TableLaunch(table), 0, stream, table, factors);
}

}  // namespace stagecoach::cuda
