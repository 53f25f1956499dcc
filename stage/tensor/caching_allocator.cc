#include "stage/tensor/caching_allocator.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

// Names the flag that set the limit, of whichever program the user started.
constexpr char kLimitFlags[] =
    " (--memory-limit-bytes of stagecoach-stage, --memory-per-stage of stagecoach)";

// Accounting and the cache, shared by the allocator and its living buffers.
class MemoryPool {
 public:
  MemoryPool(std::shared_ptr<MemorySource> source, int64_t limit_bytes, Reuse reuse)
      : source_(std::move(source)), reuse_(reuse) {
    use_.limit = limit_bytes;
  }

  ~MemoryPool() { ReleaseCached(); }

  absl::StatusOr<std::byte*> Take(int64_t rounded, MemoryKind kind) {
    const int k = static_cast<int>(kind);
    std::lock_guard<std::mutex> lock(mutex_);
    if (use_.limit > 0 && use_.total_current + rounded > use_.limit) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "memory for ", MemoryKindName(kind), ": ", rounded, " bytes asked, ", use_.total_current,
          " in use, limit ", use_.limit, kLimitFlags, source_->Explain(use_)));
    }
    std::byte* data = TakeCached(rounded);
    if (data == nullptr) data = TakeFresh(rounded);
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory for ", MemoryKindName(kind), ": ", source_->Refusal(), " ", rounded,
                       " bytes with ", use_.total_current, " in use", source_->Explain(use_)));
    }
    CountLocked(rounded, k);
    return data;
  }

  // Null where nothing is to be had without giving something back.
  std::byte* TakeWithoutRelease(int64_t rounded, MemoryKind kind) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (use_.limit > 0 && use_.total_current + rounded > use_.limit) return nullptr;
    std::byte* data = TakeCached(rounded);
    if (data == nullptr && Fits(rounded)) data = source_->Take(rounded);
    if (data != nullptr) CountLocked(rounded, static_cast<int>(kind));
    return data;
  }

  void Return(std::byte* data, int64_t rounded, MemoryKind kind) {
    std::lock_guard<std::mutex> lock(mutex_);
    use_.current[static_cast<int>(kind)] -= rounded;
    use_.total_current -= rounded;
    std::vector<std::byte*>& list = cache_[rounded];
    list.push_back(data);
    if (reuse_ == Reuse::kLowest) std::push_heap(list.begin(), list.end(), std::greater<>());
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
    std::vector<std::byte*>& list = found->second;
    if (reuse_ == Reuse::kLowest) std::pop_heap(list.begin(), list.end(), std::greater<>());
    std::byte* data = list.back();
    list.pop_back();
    use_.cached -= rounded;
    return data;
  }

  void CountLocked(int64_t rounded, int k) {
    use_.current[k] += rounded;
    use_.total_current += rounded;
    use_.peak[k] = std::max(use_.peak[k], use_.current[k]);
    use_.total_peak = std::max(use_.total_peak, use_.total_current);
  }

  // Held and cached bytes together must fit the limit; other sizes make room.
  bool Fits(int64_t rounded) const {
    return use_.limit == 0 || use_.total_current + use_.cached + rounded <= use_.limit;
  }

  std::byte* TakeFresh(int64_t rounded) {
    if (!Fits(rounded)) ReleaseCachedLocked();
    std::byte* data = source_->Take(rounded);
    if (data == nullptr) {
      ReleaseCachedLocked();
      data = source_->Take(rounded);
    }
    return data;
  }

  void ReleaseCachedLocked() {
    for (auto& [size, list] : cache_) {
      for (std::byte* data : list) source_->Give(data);
    }
    cache_.clear();
    use_.cached = 0;
  }

  const std::shared_ptr<MemorySource> source_;
  const Reuse reuse_;
  mutable std::mutex mutex_;  // guards what follows
  MemoryUse use_;
  std::map<int64_t, std::vector<std::byte*>> cache_;  // heaps where the lowest address is reused
};

class PooledBuffer final : public Buffer {
 public:
  PooledBuffer(std::shared_ptr<MemoryPool> pool, std::byte* data, int64_t bytes, MemoryKind kind)
      : Buffer(data, bytes), pool_(std::move(pool)), kind_(kind) {}
  ~PooledBuffer() override { pool_->Return(data(), bytes(), kind_); }

 private:
  const std::shared_ptr<MemoryPool> pool_;
  const MemoryKind kind_;
};

class CachingAllocator final : public Allocator {
 public:
  CachingAllocator(std::shared_ptr<MemorySource> source, int64_t limit_bytes, int64_t alignment,
                   Reuse reuse)
      : alignment_(alignment),
        pool_(std::make_shared<MemoryPool>(std::move(source), limit_bytes, reuse)) {
    CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0) << alignment;
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t bytes, MemoryKind kind) override {
    CHECK_GE(bytes, 0) << "a size";
    const int64_t rounded =
        std::max(alignment_, (bytes + alignment_ - 1) / alignment_ * alignment_);
    if (before_release_) {
      if (std::byte* const data = pool_->TakeWithoutRelease(rounded, kind)) {
        return std::shared_ptr<Buffer>(std::make_shared<PooledBuffer>(pool_, data, rounded, kind));
      }
      before_release_();
    }
    absl::StatusOr<std::byte*> data = pool_->Take(rounded, kind);
    if (!data.ok() && relief_ && relief_()) data = pool_->Take(rounded, kind);
    if (!data.ok()) return data.status();
    return std::shared_ptr<Buffer>(std::make_shared<PooledBuffer>(pool_, *data, rounded, kind));
  }
  MemoryUse Use() const override { return pool_->Use(); }
  void ResetPeak() override { pool_->ResetPeak(); }
  void ReleaseCached() override {
    if (before_release_) before_release_();
    pool_->ReleaseCached();
  }
  void SetRelief(std::function<bool()> relief) override { relief_ = std::move(relief); }
  void SetBeforeRelease(std::function<void()> call) override { before_release_ = std::move(call); }

 private:
  const int64_t alignment_;
  const std::shared_ptr<MemoryPool> pool_;  // buffers keep it alive
  std::function<bool()> relief_;
  std::function<void()> before_release_;
};

}  // namespace

const char* MemoryKindName(MemoryKind kind) {
  static constexpr const char* kNames[kMemoryKinds] = {"parameters", "gradients", "optimizer",
                                                       "activations", "workspace"};
  return kNames[static_cast<int>(kind)];
}

std::unique_ptr<Allocator> MakeCachingAllocator(std::shared_ptr<MemorySource> source,
                                                int64_t limit_bytes, int64_t alignment,
                                                Reuse reuse) {
  return std::make_unique<CachingAllocator>(std::move(source), limit_bytes, alignment, reuse);
}

}  // namespace stagecoach
