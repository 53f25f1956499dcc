// Matmul: the products of linear layers through cuBLASLt in the job's precision, with as much of
// the epilogue as the library fuses and its choice of algorithm kept per shape.
// Ownership: borrows the context.
// Threads:   executor thread only.
// Errors:    noted in the context. Why bias gradients are no epilogues here (BGRADB): they are
//            written and not added, into another buffer, and nothing says in which order their sums
//            run.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "stage/backends/cuda/cuda_context.h"
#include "stage/backends/cuda/matmul_plans.h"

namespace stagecoach::cuda {

class Matmul {
 public:
  explicit Matmul(CudaContext* context);
  ~Matmul();

  // Returns the epilogue that was fused, one of EpiloguesToTry(shape); see KernelBackend::Product.
  MatmulEpilogue Run(const MatmulShape& shape, const MatmulOperands& operands, const char* what);

  // Of the products since it was asked last, each once: "cuBLASLt 66 tile 20 stages 14 split-k 1 cluster 3, bias_gelu fused",
  // in the library's numbers.
  std::vector<std::string> TakeUsed();

 private:
  struct Plan;
  // Null, and the reason noted, where the library has nothing to offer.
  Plan* FindPlan(const MatmulShape& shape, const MatmulOperands& operands, const char* what);
  bool MakePlan(const MatmulShape& shape, MatmulEpilogue epilogue, const MatmulOperands& operands,
                Plan& plan);

  CudaContext* const context_;
  absl::flat_hash_map<MatmulShape, std::unique_ptr<Plan>> plans_;
};

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_H_
