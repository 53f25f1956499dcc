// Fills and swaps of all tensors of a stage in one launch, as the zeroing of gradients.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/packs.cuh"
#include "stage/backends/cuda/tables.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void FillAllKernel(FillTable table, float value) {
  Floats<kTablePack> values;
#pragma unroll
  for (int j = 0; j < kTablePack; ++j) values.at[j] = value;
  ForEachPack(table, [&](const FillEntry& e, int64_t i) {
    StoreFloats(values, e.y, i, 0, e.n, table.wide);
  });
}

__global__ void SwapKernel(PairTable table) {
  ForEachPack(table, [&](const PairEntry& e, int64_t i) {
    const Floats<kTablePack> first = LoadFloats<kTablePack>(e.first, i, 0, e.n, table.wide);
    const Floats<kTablePack> second = LoadFloats<kTablePack>(e.second, i, 0, e.n, table.wide);
    StoreFloats(second, e.first, i, 0, e.n, table.wide);
    StoreFloats(first, e.second, i, 0, e.n, table.wide);
  });
}

}  // namespace

cudaError_t FillAll(cudaStream_t stream, const FillTable& table, float value) {
  return Launch(FillAllKernel, TableLaunch(table), 0, stream, table, value);
}

cudaError_t Swap(cudaStream_t stream, const PairTable& table) {
  return Launch(SwapKernel, TableLaunch(table), 0, stream, table);
}

}  // namespace stagecoach::cuda
