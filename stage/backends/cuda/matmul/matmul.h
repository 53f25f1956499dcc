// Matmul: the products of linear layers through cuBLASLt in the job's precision. The library fuses
// as much of the epilogue as it can. The choice of algorithm is kept per shape: a table's, or else
// the library's.
// Ownership: borrows the context.
// Threads:   executor thread only.
// Errors:    noted in the context.
//
// Bias gradients are no epilogues here (BGRADB). The library would write them into another buffer
// instead of adding, in an unknown order of sums (docs/architecture/cuda.md, "Bias gradients").
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "stage/backends/cuda/matmul/matmul_plans.h"
#include "stage/backends/cuda/matmul/matmul_table.h"
#include "stage/backends/cuda/matmul/matmul_tuning.h"
#include "stage/backends/cuda/runtime/cuda_context.h"

namespace stagecoach::cuda {

// Its MatmulTrials is for tuning: one product at a time, between Synchronize calls.
class Matmul final : public MatmulTrials {
 public:
  // table: null, or one that fits the card (MatmulTable::CheckFits).
  Matmul(CudaContext* context, std::shared_ptr<const MatmulTable> table);
  ~Matmul() override;

  // Returns the epilogue that was fused, one of EpiloguesToTry(shape); see KernelBackend::Product.
  MatmulEpilogue Run(const MatmulShape& shape, const MatmulOperands& operands, const char* what);

  // The products since the last call, each once, in the library's numbers: "cuBLASLt 66 tile 20
  // stages 14 split-k 1 cluster 3, bias_gelu fused".
  std::vector<std::string> TakeUsed();
  const MatmulTable* table() const { return table_.get(); }

  MatmulTableHeader Header() const override;
  std::vector<MatmulShape> TakeShapes() override;
  std::vector<MatmulOffer> Offers(const MatmulShape& shape) override;
  absl::Status Take(const MatmulShape& shape, const MatmulChoice& choice) override;
  bool Refused(const MatmulShape& shape) const override;
  void Forget(const MatmulShape& shape) override;

 private:
  struct Plan;
  struct Asked;
  // Null if the library offers nothing, or not the table's algorithm; then it notes the reason.
  Plan* FindPlan(const MatmulShape& shape, const MatmulOperands& operands, const char* what);
  // The library's offers; none if it refuses.
  Asked Ask(const MatmulShape& shape, MatmulEpilogue epilogue, const MatmulOperands& operands);

  CudaContext* const context_;
  const std::shared_ptr<const MatmulTable> table_;
  absl::flat_hash_map<MatmulShape, std::unique_ptr<Plan>> plans_;
};

// A table's header for the card of this context.
MatmulTableHeader TableHeaderOf(const CudaContext& context);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_H_
