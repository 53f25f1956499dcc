// KernelBackend: prepares kernels for a card, with virtual functions for the device. It has fills,
// conversions and norms. The derived class has stream, scratch memory, products and
// copies, and attention, convolutions and pools by libraries. Errors go into one DeviceFault:
// refusals of memory are the cell's and end with it. CudaBackend derives for production; a test's
// class runs the kernels' source on the host. See stage/backends/backend.h for the contract.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_BACKEND_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "network/passes/padded_output.h"
#include "stage/backends/backend.h"
#include "stage/backends/cuda/cudnn/attention/attention_operands.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_operands.h"
#include "stage/backends/cuda/cudnn/pool/pool_operands.h"
#include "stage/backends/cuda/kernel_tables.h"
#include "stage/backends/cuda/matmul/matmul_plans.h"
#include "stage/backends/cuda/stream_types.h"
#include "stage/backends/device/call_queue.h"
#include "stage/backends/device/device_error.h"

namespace stagecoach::cuda {

class KernelBackend : public Backend {
 public:
  explicit KernelBackend(std::shared_ptr<DeviceFault> fault) : fault_(std::move(fault)) {}

  void SetPrecision(Precision precision) override;
  int64_t LogitsStride(int64_t columns, DType dtype) const override {
    return PaddedColumns(columns, dtype);
  }
  std::optional<HeadChunkLimits> HeadChunks() const override { return kCardHeadChunks; }
  // As devices/card says for this card's profile.
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override;
  std::vector<std::string> WithoutKernels() const override;
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override;
  absl::StatusOr<KernelOfAll> PrepareAll(std::span<const Call> calls,
                                         std::span<const CallTypes> types,
                                         DType activation) override;
  void BeginCalls() override;
  void EndCalls() override;
  void Fill(const Tensor& tensor, float value) override;
  void Swap(const Tensor& a, const Tensor& b) override {
    const SwapArgs args = {a, b};
    SwapAll({&args, 1});
  }
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override {
    const NormArgs args = {tensor, result};
    SquaredNorms({&args, 1});
  }
  void FillAll(std::span<const Tensor> all, float value) override;
  void SwapAll(std::span<const SwapArgs> all) override;
  void SquaredNorms(std::span<const NormArgs> all) override;
  void Convert(const Tensor& source, const Tensor& target) override;
  void EndCell() override;
  absl::Status Fault() const override { return fault_->lasting(); }

  // Services for kernels (kernels/), and the functions of the device.
  //
  // The stream to queue on, with the device current on this thread.
  virtual cudaStream_t Begin() = 0;
  void Note(cudaError_t error, const char* what) { fault_->Note(error, what); }
  void NoteStatus(const absl::Status& status, const char* what) {
    fault_->NoteStatus(status, what);
  }
  void NoteUnprepared(const absl::Status& status) override { NoteStatus(status, "a kernel"); }
  // Memory for the running operation only. If it is refused, notes the error and returns null.
  virtual void* Scratch(size_t bytes, const char* what) = 0;
  // After Begin(). If memory is refused, notes the error and returns null.
  const void* Upload(std::span<const std::byte> table, KeptTable* kept, const char* what);
  // As SquaredNorms; its table is in `kept`.
  void NormsInto(std::span<const NormArgs> all, KeptTable* kept, const char* what);
  // After Begin(). Computes the product with as much of shape.epilogue as the library fuses.
  // Returns that part, one of EpiloguesToTry. A fused GELU writes operands.activation as well.
  virtual MatmulEpilogue Product(const MatmulShape& shape, const MatmulOperands& operands,
                                 const char* what) = 0;
  // The type in which the job's products of tensors of this type are computed.
  MatmulType ProductType(DType type) const;
  Precision PrecisionOf(DType type) const;  // the same, as jobs name it
  // By a library, if the device has one that takes the shape. True: nothing is left to do, as the
  // call is queued or the device has failed.
  virtual absl::StatusOr<bool> AttendByLibrary(const AttentionForwardArgs&) { return false; }
  virtual absl::StatusOr<bool> AttendByLibrary(const AttentionBackwardArgs&) { return false; }
  virtual absl::StatusOr<bool> ConvolveByLibrary(const ConvolutionArgs&, const AroundConvolution&) {
    return false;
  }
  virtual absl::StatusOr<bool> AverageByLibrary(const AveragePoolArgs&) { return false; }

 protected:
  DeviceFault& fault() const { return *fault_; }
  // Call it before the first Prepare: calls go through the queue. The derived class owns the queue.
  // It settles the queue in Begin() and before any other work for the card.
  void QueueCallsIn(CallQueue* queue) { queue_ = queue; }
  CallQueue* queue() const { return queue_; }  // null: calls run at once

 private:
  const std::shared_ptr<DeviceFault> fault_;
  Precision precision_ = Precision::kFloat32;
  CallQueue* queue_ = nullptr;
  KeptTable fills_, norms_, pairs_;
};

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_BACKEND_H_
