// Workspace: scratch memory of a back end, kept between calls and grown to the largest request.
// Ownership: buffers of the back end's allocator, accounted as workspace. A pointer is good until a
//            larger request for the same slot, or until Clear.
// Threads:   slots are reserved by the executor thread before a batch of tasks starts.
// Errors:    Reserve returns null when the allocator is over its limit, and keeps the first such
//            status. The operation then leaves its outputs alone. The status comes back from
//            Synchronize, until Clear.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_WORKSPACE_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_WORKSPACE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "stage/tensor/allocator.h"

namespace stagecoach::cpu {

class Workspace {
 public:
  Workspace(Allocator* allocator, int slots) : allocator_(allocator), slots_(slots) {}

  float* Reserve(int slot, int64_t bytes) {
    std::shared_ptr<Buffer>& buffer = slots_[slot];
    if (buffer == nullptr || buffer->bytes() < bytes) {
      buffer.reset();  // first, so that old and new need not fit at once
      auto grown = allocator_->Allocate(bytes, MemoryKind::kWorkspace);
      if (!grown.ok()) {
        if (status_.ok()) status_ = grown.status();
        return nullptr;
      }
      buffer = *std::move(grown);
    }
    return Slot(slot);
  }
  // Releases the slot's memory if it is larger than `above` bytes.
  void Free(int slot, int64_t above) {
    if (slots_[slot] != nullptr && slots_[slot]->bytes() > above) slots_[slot].reset();
  }
  int64_t Bytes(int slot) const { return slots_[slot] == nullptr ? 0 : slots_[slot]->bytes(); }
  float* Slot(int slot) const { return reinterpret_cast<float*>(slots_[slot]->data()); }
  const absl::Status& status() const { return status_; }
  // Releases all buffers and forgets a refusal: the next cell may have room.
  void Clear() {
    for (std::shared_ptr<Buffer>& buffer : slots_) buffer.reset();
    status_ = absl::OkStatus();
  }

 private:
  Allocator* const allocator_;
  std::vector<std::shared_ptr<Buffer>> slots_;
  absl::Status status_;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_WORKSPACE_H_
