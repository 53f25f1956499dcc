// RecordingBackend: another back end, with every call written into a CallLog before it runs. Two
// forms of the same training are the same if their texts are. The text shows operations, arguments,
// their order and the life of every buffer. Equal results do not show these. All kernels are
// written down. A new pure function of Backend, or a new argument, does not compile until
// recording_backend.cc writes it down. A new function with a body fails a test until it is handed
// on.
// Ownership: owns the other back end; shares the log.
// Threads:   the executor thread only, the allocator too.
// Not written down: questions about the device (fingerprint, faults, times, progress, copies that
//            are polled).
#ifndef STAGECOACH_STAGE_BACKENDS_RECORDING_RECORDING_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_RECORDING_RECORDING_BACKEND_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stage/backends/backend.h"
#include "stage/backends/recording/recording_allocator.h"

namespace stagecoach {

class RecordingBackend final : public Backend {
 public:
  RecordingBackend(std::unique_ptr<Backend> inner, std::shared_ptr<CallLog> log);

  std::string fingerprint() const override { return inner_->fingerprint(); }
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override {
    return inner_->Describe(call, types, samples, activation);
  }
  std::vector<std::string> WithoutKernels() const override { return inner_->WithoutKernels(); }
  std::vector<std::string> TakeWays() override { return inner_->TakeWays(); }
  int64_t LogitsStride(int64_t columns, DType dtype) const override {
    return inner_->LogitsStride(columns, dtype);
  }
  std::optional<HeadChunkLimits> HeadChunks() const override { return inner_->HeadChunks(); }
  std::optional<CardProfile> Card() const override { return inner_->Card(); }
  HostProfile Host() const override { return inner_->Host(); }
  Allocator& allocator() override { return allocator_; }
  Allocator& link_allocator() override;
  void SetPrecision(Precision precision) override;
  void UseSpareMemory(const SpareMemory& spare) override { inner_->UseSpareMemory(spare); }
  // A kernel writes down each of its calls, as
  //   rms_norm epsilon=1e-05 in=F0.t1:F32[16,8] in=... out=F0.t2:F32[16,8] adds=...
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override;
  // A kernel for many calls writes a line and, below it, one for each call.
  absl::StatusOr<KernelOfAll> PrepareAll(std::span<const Call> calls,
                                         std::span<const CallTypes> types,
                                         DType activation) override;

  void Fill(const Tensor& tensor, float value) override;
  void Swap(const Tensor& a, const Tensor& b) override;
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override;
  void FillAll(std::span<const Tensor> all, float value) override;
  void SwapAll(std::span<const SwapArgs> all) override;
  void SquaredNorms(std::span<const NormArgs> all) override;
  void Convert(const Tensor& source, const Tensor& target) override;
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override;
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override;
  absl::StatusOr<uint64_t> CopyToLink(const Tensor& source, const Tensor& target) override;
  absl::StatusOr<bool> LinkCopyDone(uint64_t copy) override { return inner_->LinkCopyDone(copy); }
  absl::StatusOr<Tensor> CopyFromLink(const Tensor& source) override;
  void OnLinkCopyDone(std::function<void()> wake) override {
    inner_->OnLinkCopyDone(std::move(wake));
  }
  void EndLinkCopies() override;
  absl::Status Synchronize() override;
  void TellProgress() override { inner_->TellProgress(); }
  void EndCell() override;
  absl::Status Fault() const override { return inner_->Fault(); }
  bool MarkTime() override { return inner_->MarkTime(); }
  void NoteUnprepared(const absl::Status& status) override { inner_->NoteUnprepared(status); }
  void BeginCalls() override { inner_->BeginCalls(); }
  void EndCalls() override { inner_->EndCalls(); }
  std::vector<int64_t> TakeTimes() override { return inner_->TakeTimes(); }

 private:
  const std::unique_ptr<Backend> inner_;
  const std::shared_ptr<CallLog> log_;
  RecordingAllocator allocator_, link_allocator_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_RECORDING_RECORDING_BACKEND_H_
