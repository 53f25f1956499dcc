#include "stage/backends/cuda/kernels/updates/rmsprop_update.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void RmsPropKernel(UpdateTable table, RmsPropFactors f) {
  ForEachPack(table, [&](const UpdateEntry& e, int64_t i) {
    Floats<kTablePack> value = LoadFloats<kTablePack>(e.value, i, 0, e.n, table.wide);
    const Floats<kTablePack> gradient = LoadFloats<kTablePack>(e.gradient, i, 0, e.n, table.wide);
    Floats<kTablePack> square = LoadFloats<kTablePack>(e.first, i, 0, e.n, table.wide);
    Floats<kTablePack> update;
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) {
      const float g = gradient.at[j] * f.gradient_scale + e.weight_decay * value.at[j];
      square.at[j] = f.decay * square.at[j] + (1.0f - f.decay) * g * g;
      update.at[j] = f.inner_rate * g / (sqrtf(square.at[j] + f.inside) + f.outside);
    }
    StoreFloats(square, e.first, i, 0, e.n, table.wide);
    if (e.second != nullptr) {
      const Floats<kTablePack> velocity = LoadFloats<kTablePack>(e.second, i, 0, e.n, table.wide);
#pragma unroll
      for (int j = 0; j < kTablePack; ++j) {
        update.at[j] = f.momentum * velocity.at[j] + update.at[j];
      }
      StoreFloats(update, e.second, i, 0, e.n, table.wide);
    }
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) value.at[j] -= f.outer_rate * update.at[j];
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

}  // namespace

cudaError_t RmsProp(cudaStream_t stream, const UpdateTable& table, const RmsPropFactors& factors) {
  return Launch(RmsPropKernel, TableLaunch(table), 0, stream, table, factors);
}

}  // namespace stagecoach::cuda
