// Host memory, cached by size: a training step asks for the same few sizes over and over, and
// memory that goes back to the kernel has to be faulted in again.
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "stage/tensor/allocator.h"

namespace stagecoach {
namespace {

constexpr int64_t kAlignment = 64;

// Accounting and the cache, shared by the allocator and its living buffers.
class HostPool {
 public:
  explicit HostPool(int64_t limit_bytes) { use_.limit = limit_bytes; }

  ~HostPool() { ReleaseCached(); }

  absl::StatusOr<std::byte*> Take(int64_t rounded, MemoryKind kind) {
    const int k = static_cast<int>(kind);
    std::lock_guard<std::mutex> lock(mutex_);
    if (use_.limit > 0 && use_.total_current + rounded > use_.limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory for ", MemoryKindName(kind), ": ", rounded, " bytes asked, ",
                       use_.total_current, " in use, limit ", use_.limit));
    }
    std::byte* data = TakeCached(rounded);
    if (data == nullptr) data = AllocateFresh(rounded);
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory for ", MemoryKindName(kind), ": the system refused ", rounded,
                       " bytes with ", use_.total_current, " in use"));
    }
    use_.current[k] += rounded;
    use_.total_current += rounded;
    use_.peak[k] = std::max(use_.peak[k], use_.current[k]);
    use_.total_peak = std::max(use_.total_peak, use_.total_current);
    return data;
  }

  void Return(std::byte* data, int64_t rounded, MemoryKind kind) {
    std::lock_guard<std::mutex> lock(mutex_);
    use_.current[static_cast<int>(kind)] -= rounded;
    use_.total_current -= rounded;
    cache_[rounded].push_back(data);
    use_.cached += rounded;
  }

  MemoryUse Use() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return use_;
  }

  void ResetPeak() {
    std::lock_guard<std::mutex> lock(mutex_);
    use_.peak = use_.current;
    use_.total_peak = use_.total_current;
  }

  void ReleaseCached() {
    std::lock_guard<std::mutex> lock(mutex_);
    ReleaseCachedLocked();
  }

 private:
  std::byte* TakeCached(int64_t rounded) {
    auto found = cache_.find(rounded);
    if (found == cache_.end() || found->second.empty()) return nullptr;
    std::byte* data = found->second.back();
    found->second.pop_back();
    use_.cached -= rounded;
    return data;
  }

  // Held and cached bytes together must fit the limit; other sizes make room.
  std::byte* AllocateFresh(int64_t rounded) {
    if (use_.limit > 0 && use_.total_current + use_.cached + rounded > use_.limit) {
      ReleaseCachedLocked();
    }
    void* data = std::aligned_alloc(kAlignment, static_cast<size_t>(rounded));
    if (data == nullptr) {
      ReleaseCachedLocked();
      data = std::aligned_alloc(kAlignment, static_cast<size_t>(rounded));
    }
    return static_cast<std::byte*>(data);
  }

  void ReleaseCachedLocked() {
    for (auto& [size, list] : cache_) {
      for (std::byte* data : list) std::free(data);
    }
    cache_.clear();
    use_.cached = 0;
  }

  mutable std::mutex mutex_;  // guards what follows
  MemoryUse use_;
  std::map<int64_t, std::vector<std::byte*>> cache_;
};

class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::shared_ptr<HostPool> pool, std::byte* data, int64_t bytes, MemoryKind kind)
      : Buffer(data, bytes), pool_(std::move(pool)), kind_(kind) {}
  ~HostBuffer() override { pool_->Return(data(), bytes(), kind_); }

 private:
  const std::shared_ptr<HostPool> pool_;
  const MemoryKind kind_;
};

class HostAllocator final : public Allocator {
 public:
  explicit HostAllocator(int64_t limit_bytes) : pool_(std::make_shared<HostPool>(limit_bytes)) {}

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t bytes, MemoryKind kind) override {
    CHECK_GE(bytes, 0) << "a size";
    const int64_t rounded =
        std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    absl::StatusOr<std::byte*> data = pool_->Take(rounded, kind);
    if (!data.ok()) return data.status();
    return std::shared_ptr<Buffer>(std::make_shared<HostBuffer>(pool_, *data, rounded, kind));
  }
  MemoryUse Use() const override { return pool_->Use(); }
  void ResetPeak() override { pool_->ResetPeak(); }
  void ReleaseCached() override { pool_->ReleaseCached(); }

 private:
  const std::shared_ptr<HostPool> pool_;  // buffers keep it alive
};

}  // namespace

const char* MemoryKindName(MemoryKind kind) {
  static constexpr const char* kNames[kMemoryKinds] = {"parameters", "gradients", "optimizer",
                                                       "activations", "workspace"};
  return kNames[static_cast<int>(kind)];
}

std::unique_ptr<Allocator> MakeHostAllocator(int64_t limit_bytes) {
  return std::make_unique<HostAllocator>(limit_bytes);
}

}  // namespace stagecoach
