#include "services/common/grpc/access/call_pace.h"

#include <algorithm>

namespace stagecoach {

double CallPace::TokensAt(const Bucket& bucket, double seconds) const {
  const double passed = std::max(0.0, seconds - bucket.seconds);
  return std::min(limits_.stock, bucket.tokens + passed * limits_.per_second);
}

// Whoever has a full stock is as good as unknown.
void CallPace::ForgetFullLocked(double seconds) {
  absl::erase_if(buckets_, [&](const auto& entry) {
    return TokensAt(entry.second, seconds) >= limits_.stock;
  });
  sweep_at_ = std::max<size_t>(1024, 2 * buckets_.size());
}

bool CallPace::Take(const std::string& caller) {
  const double now = static_cast<double>(clock_->MonotonicNanos()) * 1e-9;
  std::lock_guard<std::mutex> lock(mutex_);
  if (buckets_.size() >= sweep_at_) ForgetFullLocked(now);
  const auto [entry, is_new] = buckets_.try_emplace(caller, Bucket{limits_.stock, now});
  Bucket& bucket = entry->second;
  bucket = {TokensAt(bucket, now), std::max(now, bucket.seconds)};
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

bool CallPace::Has(const std::string& caller) const {
  const double now = clock_->MonotonicSeconds();
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buckets_.find(caller);
  return found == buckets_.end() || TokensAt(found->second, now) >= 1;
}

size_t CallPace::known() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return buckets_.size();
}

}  // namespace stagecoach
