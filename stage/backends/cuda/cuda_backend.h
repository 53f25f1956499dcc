// CudaBackend: kernels and memory of an NVIDIA card. Products go to cuBLASLt. If cuDNN is there and
// takes them, attention in BF16, convolutions and averages over windows go to cuDNN. Own kernels do
// the rest. Everything is queued on the context's one stream. See stage/backends/backend.h for the
// contract.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stage/backends/cuda/cudnn/attention/fused_attention.h"
#include "stage/backends/cuda/cudnn/convolution/library_convolution.h"
#include "stage/backends/cuda/cudnn/pool/library_pool.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/matmul/matmul.h"
#include "stage/backends/cuda/runtime/cuda_context.h"
#include "stage/backends/cuda/runtime/cuda_graph_api.h"

namespace stagecoach::cuda {

class CudaBackend final : public KernelBackend {
 public:
  // table: null, or one that fits the card.
  explicit CudaBackend(std::unique_ptr<CudaContext> context,
                       std::shared_ptr<const MatmulTable> table = nullptr);
  ~CudaBackend() override;  // waits for queued work, as cuDNN's plans own kernels

  std::string fingerprint() const override;
  // Builds the plans of an attention that cuDNN may compute, and says whether it does.
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override;
  std::vector<std::string> TakeWays() override;
  std::optional<CardProfile> Card() const override { return CardProfile{attention_.kernels()}; }
  Allocator& allocator() override { return context_->allocator(); }
  Allocator& link_allocator() override { return context_->host_allocator(); }

  absl::StatusOr<uint64_t> CopyToLink(const Tensor& source, const Tensor& target) override;
  absl::StatusOr<bool> LinkCopyDone(uint64_t copy) override;
  absl::StatusOr<Tensor> CopyFromLink(const Tensor& source) override;
  void OnLinkCopyDone(std::function<void()> wake) override;
  void EndLinkCopies() override;
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override;
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override;
  absl::Status Synchronize() override;
  void TellProgress() override;
  bool MarkTime() override;
  std::vector<int64_t> TakeTimes() override;
  MatmulTrials& trials() { return matmul_; }
  // Call it before the first Prepare: lists of calls become CUDA graphs. The context's memory is
  // best reused from the lowest address.
  void QueueCalls(std::function<void(const std::string&)> say);

 protected:
  cudaStream_t Begin() override;
  void* Scratch(size_t bytes, const char* what) override;
  MatmulEpilogue Product(const MatmulShape& shape, const MatmulOperands& operands,
                         const char* what) override;
  absl::StatusOr<bool> AttendByLibrary(const AttentionForwardArgs& args) override;
  absl::StatusOr<bool> AttendByLibrary(const AttentionBackwardArgs& args) override;
  absl::StatusOr<bool> ConvolveByLibrary(const ConvolutionArgs& args,
                                         const AroundConvolution& around) override;
  absl::StatusOr<bool> AverageByLibrary(const AveragePoolArgs& args) override;

 private:
  // Makes the card current and launches queued calls, before work that bypasses Begin().
  void Settle();
  void NoteRoom(int64_t taken_before);

  const std::unique_ptr<CudaContext> context_;
  const std::unique_ptr<GraphApi> graphs_ = MakeCudaGraphApi();
  std::unique_ptr<CallQueue> calls_;  // null: calls run at once
  Matmul matmul_;
  cudnn::FusedAttention attention_;
  cudnn::LibraryConvolution convolution_;
  cudnn::LibraryPool pool_;
  bool attended_by_library_ = false;  // since TakeWays
};

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_BACKEND_H_
