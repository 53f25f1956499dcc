#include "stage/backends/cuda/kernels/updates/average_update.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void AverageKernel(PairTable table, float rate) {
  ForEachPack(table, [&](const PairEntry& e, int64_t i) {
    const Floats<kTablePack> value = LoadFloats<kTablePack>(e.first, i, 0, e.n, table.wide);
    Floats<kTablePack> average = LoadFloats<kTablePack>(e.second, i, 0, e.n, table.wide);
#pragma unroll
    for (int j = 0; j < kTablePack; ++j) average.at[j] += rate * (value.at[j] - average.at[j]);
    StoreFloats(average, e.second, i, 0, e.n, table.wide);
  });
}

}  // namespace

cudaError_t Average(cudaStream_t stream, const PairTable& table, float rate) {
  return Launch(AverageKernel, TableLaunch(table), 0, stream, table, rate);
}

}  // namespace stagecoach::cuda
