#include "stage/backends/cuda/cuda_backend.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach::cuda {

CudaBackend::CudaBackend(std::unique_ptr<CudaContext> context)
    : context_(std::move(context)), matmul_(context_.get()) {}

cudaStream_t CudaBackend::Begin() {
  context_->MakeCurrent();
  return context_->stream();
}

void* CudaBackend::Scratch(size_t bytes, const char* what) {
  if (bytes > context_->workspace_bytes()) {
    context_->Note(cudaErrorMemoryAllocation, what);
    return nullptr;
  }
  return context_->workspace();
}

MatmulEpilogue CudaBackend::Product(const MatmulShape& shape, const MatmulOperands& operands,
                                    const char* what) {
  return matmul_.Run(shape, operands, what);
}

// Pageable memory has been taken over when the call returns; pinned memory is borrowed until
// Synchronize, as the contract says.
void CudaBackend::CopyFromHost(std::span<const std::byte> source, const Tensor& target) {
  CHECK_EQ(static_cast<int64_t>(source.size()), target.bytes()) << target.shape().ToString();
  if (source.empty()) return;
  const cudaStream_t stream = Begin();
  context_->Note(
      cudaMemcpyAsync(target.raw(), source.data(), source.size(), cudaMemcpyHostToDevice, stream),
      "CopyFromHost");
}

void CudaBackend::CopyToHost(const Tensor& source, std::span<std::byte> target) {
  CHECK_EQ(static_cast<int64_t>(target.size()), source.bytes()) << source.shape().ToString();
  if (target.empty()) return;
  const cudaStream_t stream = Begin();
  context_->Note(
      cudaMemcpyAsync(target.data(), source.raw(), target.size(), cudaMemcpyDeviceToHost, stream),
      "CopyToHost");
  context_->Note(cudaStreamSynchronize(stream), "CopyToHost");
}

absl::Status CudaBackend::CopyToLink(const Tensor& source, const Tensor& target) {
  context_->MakeCurrent();
  return context_->staging().ToLink(source, target);
}

absl::Status CudaBackend::CopyFromLink(const Tensor& source, const Tensor& target) {
  context_->MakeCurrent();
  return context_->staging().FromLink(source, target);
}

absl::Status CudaBackend::Synchronize() {
  context_->MakeCurrent();
  return context_->Synchronize();
}

}  // namespace stagecoach::cuda

namespace stagecoach {

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions& options,
                                                         int ordinal) {
  ASSIGN_OR_RETURN(auto context, CudaContext::Open(ordinal, options.memory_limit_bytes));
  return std::make_unique<cuda::CudaBackend>(std::move(context));
}

}  // namespace stagecoach
