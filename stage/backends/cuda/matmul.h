// Matmul: the products of linear layers through cuBLASLt in float32 (TF32 stays off), with the
// library's choice of algorithm kept per shape.
// Ownership: borrows the context. Threads: executor thread only.
// Errors:    noted in the context.
// Why GELU and its derivative are no epilogues here: the library does not say how exactly it
// evaluates tanh, and float32 is held to 1e-5 of the reference. A pass over the result costs little
// beside a float32 product.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "stage/backends/cuda/cuda_context.h"
#include "stage/backends/cuda/matmul_plans.h"

namespace stagecoach::cuda {

class Matmul {
 public:
  explicit Matmul(CudaContext* context);
  ~Matmul();

  // a, b as DescribeMatmul names them; bias[out] iff shape.bias.
  void Run(const MatmulShape& shape, const float* a, const float* b, const float* bias, float* d,
           const char* what);

 private:
  struct Plan;
  // Null, and the reason noted, where the library has nothing to offer.
  Plan* FindPlan(const MatmulShape& shape, const float* bias, const char* what);
  bool MakePlan(const MatmulShape& shape, bool fuse_bias, const float* bias, Plan& plan);

  CudaContext* const context_;
  absl::flat_hash_map<MatmulShape, std::unique_ptr<Plan>> plans_;
};

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_H_
