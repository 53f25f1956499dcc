// The kernels of the CUDA back end behind plain functions: pointers to device memory, shapes, a
// stream. C++17 without the project's tensors, since nvcc compiles the other side.
// Ownership: borrowed until the stream has passed. `scratch` is the stream's and need not be kept.
// Units and shapes: row-major, as stage/backends/backend.h says for the operation. T is float or
//            Bf16; with Bf16 the arithmetic is float's and each output is rounded once.
// Errors:    the launch's error; a kernel's own error comes from the stream later.
// Determinism: no atomics; sums run in an order that depends on shapes alone. The compiler may fuse
//            a multiplication and an addition (nvcc's default). The bits are those of the card's
//            program, not the CPU's. They are the same in every run and for every number of stages.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "stage/backends/cuda/device_math.h"
#include "stage/backends/cuda/stream_types.h"

namespace stagecoach::cuda {

template <typename T>
cudaError_t Fill(cudaStream_t stream, T* y, float value, int64_t n);
// Float and Bf16 each.
template <typename From, typename To>
cudaError_t Convert(cudaStream_t stream, const From* x, To* y, int64_t n);

// Tables of tensors, for one launch over all tensors of a stage. Entries are in device memory.
// first_chunk is the number of chunks of all entries before.
struct FillEntry {
  float* y;
  int64_t n, first_chunk;
};
struct FillTable {
  const FillEntry* entries;
  int64_t count, chunks;  // chunks of kUpdateChunk elements
  bool wide;              // all arrays lie on multiples of 16 bytes
};
cudaError_t FillAll(cudaStream_t stream, const FillTable& table, float value);

struct PairEntry {
  float *first, *second;
  int64_t n, first_chunk;
};
struct PairTable {
  const PairEntry* entries;
  int64_t count, chunks;  // chunks of kUpdateChunk elements
  bool wide;
};
cudaError_t Swap(cudaStream_t stream, const PairTable& table);

// result = the sum of squares in double. A chunk has the elements of one partial sum (PlanNorm).
struct NormEntry {
  const float* x;
  double* result;
  int64_t n, first_chunk, elements_per_chunk;
};
struct NormTable {
  const NormEntry* entries;
  int64_t count, chunks;
  bool wide;
};
// scratch: one double per chunk.
cudaError_t SquaredNorms(cudaStream_t stream, const NormTable& table, double* scratch);

// d_bias[columns] adds the column sums of dy. scratch: PlanColumnSum(rows, columns, 1, .).
template <typename T>
cudaError_t ColumnSum(cudaStream_t stream, const T* dy, float* d_bias, int64_t rows,
                      int64_t columns, float* scratch);
// result = the sum of `count` values, 0 if there are none.
cudaError_t OrderedTotal(cudaStream_t stream, const double* partial, int64_t count, double* result);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_H_
