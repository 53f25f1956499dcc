// CudaBackend: the operations on an NVIDIA card: cuBLASLt for products, own kernels for the rest,
// everything queued on the context's one stream.
// See stage/backends/backend.h for the contract.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <memory>
#include <string>

#include "stage/backends/cuda/cuda_context.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/matmul.h"

namespace stagecoach::cuda {

class CudaBackend final : public KernelBackend {
 public:
  explicit CudaBackend(std::unique_ptr<CudaContext> context);

  const char* name() const override { return "cuda"; }
  std::string fingerprint() const override { return context_->fingerprint(); }
  Allocator& allocator() override { return context_->allocator(); }
  Allocator& link_allocator() override { return context_->host_allocator(); }

  absl::Status CopyToLink(const Tensor& source, const Tensor& target) override;
  absl::Status CopyFromLink(const Tensor& source, const Tensor& target) override;
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override;
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override;
  absl::Status Synchronize() override;

 protected:
  cudaStream_t Begin() override;
  void Note(cudaError_t error, const char* what) override { context_->Note(error, what); }
  void* Scratch(size_t bytes, const char* what) override;
  MatmulEpilogue Product(const MatmulShape& shape, const MatmulOperands& operands,
                         const char* what) override;

 private:
  const std::unique_ptr<CudaContext> context_;
  Matmul matmul_;
};

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_BACKEND_H_
