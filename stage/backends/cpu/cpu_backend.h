// CpuBackend: the operations on host memory, linear algebra by oneDNN, the rest by the kernels.
// See stage/backends/backend.h for the contract. Every operation is cut into blocks that depend on
// the shapes alone, and the blocks are given to the worker pool: results do not depend on the
// number of threads.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_CPU_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_CPU_BACKEND_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "stage/backends/backend.h"
#include "stage/backends/cpu/matmul.h"
#include "stage/backends/cpu/worker_pool.h"
#include "stage/backends/cpu/workspace.h"

namespace stagecoach::cpu {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options);

  const char* name() const override { return "cpu"; }
  std::string fingerprint() const override;
  Allocator& allocator() override { return *allocator_; }

  void LinearForward(const LinearForwardArgs& args) override;
  void LinearBackwardInput(const LinearBackwardInputArgs& args) override;
  void LinearBackwardWeight(const LinearBackwardWeightArgs& args) override;
  void LayerNormForward(const LayerNormForwardArgs& args) override;
  void LayerNormBackwardInput(const LayerNormBackwardInputArgs& args) override;
  void LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args) override;
  void AttentionForward(const AttentionForwardArgs& args) override;
  void AttentionBackward(const AttentionBackwardArgs& args) override;
  void GeluForward(const GeluForwardArgs& args) override;
  void GeluBackward(const GeluBackwardArgs& args) override;
  void Dropout(const DropoutArgs& args) override;
  void EmbeddingForward(const EmbeddingForwardArgs& args) override;
  void EmbeddingBackward(const EmbeddingBackwardArgs& args) override;
  void CrossEntropy(const CrossEntropyArgs& args) override;
  void Add(const AddArgs& args) override;
  void Fill(const Tensor& tensor, float value) override;
  void Sgd(const SgdArgs& args) override;
  void AdamW(const AdamWArgs& args) override;
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override;
  void Convert(const Tensor& source, const Tensor& target) override;
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override;
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override;
  absl::Status Synchronize() override { return workspace_.status(); }

 private:
  // body(first, count, worker) for consecutive blocks of `block` out of [0, total).
  using BlockBody = absl::FunctionRef<void(int64_t first, int64_t count, int worker)>;
  void ForEachBlock(int64_t total, int64_t block, BlockBody body);
  // The rows of a product with one matrix in common, block by block; `finish` then runs on the rows
  // while they are in the cache.
  struct RowProduct;
  void RunRowProduct(const RowProduct& product, BlockBody finish);

  // Workspace slots: one per worker, then the operation's own.
  bool ReserveWorkers(int64_t bytes);
  float* WorkerScratch(int worker) const { return workspace_.Slot(worker); }
  float* ReserveShared(int64_t bytes) { return workspace_.Reserve(pool_.threads(), bytes); }

  const std::unique_ptr<Allocator> allocator_;
  WorkerPool pool_;
  Workspace workspace_;
  MatmulCache matmuls_;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_CPU_BACKEND_H_
