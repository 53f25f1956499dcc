#include "stage/backends/cuda/kernels/updates/sgd_update.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void SgdKernel(UpdateTable table, SgdFactors factors) {
  ForEachPack(table, [&](const UpdateEntry& e, int64_t i) {
    Floats<kTablePack> value = LoadFloats<kTablePack>(e.value, i, 0, e.n, table.wide);
    Floats<kTablePack> update = LoadFloats<kTablePack>(e.gradient, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) update.at[j] *= factors.gradient_scale;
    if (e.first != nullptr) {
      const Floats<kTablePack> velocity = LoadFloats<kTablePack>(e.first, i, 0, e.n, table.wide);
      Floats<kTablePack> next;
#pragma unroll
      for (int j = 0; j < kTablePack; ++j) {
        next.at[j] = factors.momentum * velocity.at[j] + update.at[j];
        update.at[j] =
            factors.nesterov != 0 ? update.at[j] + factors.momentum * next.at[j] : next.at[j];
      }
      StoreFloats(next, e.first, i, 0, e.n, table.wide);
    }
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) {
      const float w = value.at[j];
      value.at[j] = w - factors.learning_rate * (update.at[j] + e.weight_decay * w);
    }
    StoreFloats(value, e.value, i, 0, e.n, table.wide);
    if (e.compute != nullptr) StoreFloats(value, e.compute, i, 0, e.n, table.wide);
  });
}

}  // namespace

cudaError_t Sgd(cudaStream_t stream, const UpdateTable& table, const SgdFactors& factors) {
  return Launch(SgdKernel, TableLaunch(table), 0, stream, table, factors);
}

}  // namespace stagecoach::cuda
