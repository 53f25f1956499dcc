// RecordingAllocator: another allocator's memory, every allocation and free in a CallLog.
// Ownership: borrows the other allocator; its own buffers share the log.
// Threads:   one, that of the log.
// Errors:    those of the other allocator, which leave no line.
#ifndef STAGECOACH_STAGE_BACKENDS_RECORDING_RECORDING_ALLOCATOR_H_
#define STAGECOACH_STAGE_BACKENDS_RECORDING_RECORDING_ALLOCATOR_H_

#include <functional>
#include <memory>
#include <utility>

#include "stage/backends/recording/call_log.h"
#include "stage/tensor/allocator.h"

namespace stagecoach {

class RecordingAllocator final : public Allocator {
 public:
  RecordingAllocator(Allocator& inner, std::shared_ptr<CallLog> log)
      : inner_(inner), log_(std::move(log)) {}

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t bytes, MemoryKind kind) override;
  MemoryUse Use() const override { return inner_.Use(); }
  void ResetPeak() override { inner_.ResetPeak(); }
  void ReleaseCached() override { inner_.ReleaseCached(); }
  void SetRelief(std::function<bool()> relief) override { inner_.SetRelief(std::move(relief)); }
  void SetBeforeRelease(std::function<void()> call) override {
    inner_.SetBeforeRelease(std::move(call));
  }

  // Makes a buffer of this allocator from one that the inner allocator gave to another caller.
  std::shared_ptr<Buffer> Adopt(std::shared_ptr<Buffer> buffer, int64_t bytes, MemoryKind kind);

 private:
  Allocator& inner_;
  const std::shared_ptr<CallLog> log_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_RECORDING_RECORDING_ALLOCATOR_H_
