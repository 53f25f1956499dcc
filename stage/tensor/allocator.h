// Allocator: device memory by kind, cached by size, every byte accounted.
// Ownership: the tensors (and wire slices) that read a Buffer share it. It returns to its allocator
//            when the last one releases it; the allocator outlives its buffers.
// Threads:   thread-safe: gRPC threads allocate for received tensors and free sent ones. A buffer's
//            version belongs to the thread that writes its values.
// Units and shapes: bytes; 64-byte aligned; accounted as asked for, rounded up to 64.
// Errors:    RESOURCE_EXHAUSTED when over the limit, naming kind, size, use and limit.
#ifndef STAGECOACH_STAGE_TENSOR_ALLOCATOR_H_
#define STAGECOACH_STAGE_TENSOR_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"

namespace stagecoach {

enum class MemoryKind : uint8_t { kParameters, kGradients, kOptimizer, kActivations, kWorkspace };
inline constexpr int kMemoryKinds = 5;
const char* MemoryKindName(MemoryKind kind);  // "parameters", ... as the metric label says

class Buffer {
 public:
  virtual ~Buffer() = default;
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  // Version of the values, for buffers that count it, as parameters do. A result derived from them,
  // such as packed weights, stays valid while the number is the same. A number never comes back, in
  // no buffer. 0: not counted, the values may differ at each look.
  uint64_t version() const { return *version_; }
  void CountVersions() { *version_ = NextVersion(); }  // from now on
  // Marks the values as changed, now or before the next read. A back end that uses versions calls
  // it in each of its functions that may write a parameter. Other writers of a parameter must call
  // it themselves.
  void Rewritten() {
    if (*version_ != 0) *version_ = NextVersion();
  }

 protected:
  Buffer(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes), version_(&own_version_) {}
  // A part of another, which it keeps: whoever writes the part changes the whole.
  Buffer(std::byte* data, int64_t bytes, Buffer& whole)
      : data_(data), bytes_(bytes), version_(whole.version_) {}

 private:
  static uint64_t NextVersion() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  std::byte* const data_;
  const int64_t bytes_;
  uint64_t own_version_ = 0;
  uint64_t* const version_;
};

struct MemoryUse {
  std::array<int64_t, kMemoryKinds> current{};  // bytes by kind
  std::array<int64_t, kMemoryKinds> peak{};     // highest `current` of each kind since ResetPeak
  int64_t total_current = 0;
  int64_t total_peak = 0;  // highest sum over the kinds (not the sum of peaks)
  int64_t cached = 0;      // free but kept
  int64_t limit = 0;       // 0: none
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t bytes, MemoryKind kind) = 0;
  virtual MemoryUse Use() const = 0;
  virtual void ResetPeak() = 0;
  virtual void ReleaseCached() = 0;
  // Called on the thread that allocates, under no lock, before an allocation is refused. True if it
  // released memory and a second try is worth it. Set before the first allocation.
  virtual void SetRelief(std::function<bool()>) {}
  // Called on the thread that asks, under no lock, before cached memory may be returned to its
  // source. By its return, work that will use that memory must be queued. Set before the first
  // allocation.
  virtual void SetBeforeRelease(std::function<void()>) {}
};

// Host memory; limit_bytes 0 means none.
std::unique_ptr<Allocator> MakeHostAllocator(int64_t limit_bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TENSOR_ALLOCATOR_H_
