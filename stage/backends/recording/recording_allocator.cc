#include "stage/backends/recording/recording_allocator.h"

#include "base/errors/status.h"

namespace stagecoach {
namespace {

class RecordedBuffer final : public Buffer {
 public:
  RecordedBuffer(std::shared_ptr<Buffer> inner, int64_t bytes, MemoryKind kind,
                 std::shared_ptr<CallLog> log)
      : Buffer(inner->data(), inner->bytes()), inner_(std::move(inner)), log_(std::move(log)) {
    log_->Allocated(*this, bytes, kind);
  }
  ~RecordedBuffer() override { log_->Freed(*this); }

 private:
  const std::shared_ptr<Buffer> inner_;
  const std::shared_ptr<CallLog> log_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Buffer>> RecordingAllocator::Allocate(int64_t bytes,
                                                                     MemoryKind kind) {
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, inner_.Allocate(bytes, kind));
  return Adopt(std::move(buffer), bytes, kind);
}

std::shared_ptr<Buffer> RecordingAllocator::Adopt(std::shared_ptr<Buffer> buffer, int64_t bytes,
                                                  MemoryKind kind) {
  return std::make_shared<RecordedBuffer>(std::move(buffer), bytes, kind, log_);
}

}  // namespace stagecoach
