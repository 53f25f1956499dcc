// BoundedQueue: FIFO between threads with a fixed capacity.
// Ownership: an element changes hands only when TryPush returns true; a refused one is intact.
// Threads:   thread-safe. Waits end on an element, on Close, or at the deadline.
// Errors:    full and empty are answers. After Close pushes are refused and pops drain what is
// left.
#ifndef STAGECOACH_BASE_THREADS_BOUNDED_QUEUE_H_
#define STAGECOACH_BASE_THREADS_BOUNDED_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/errors/check.h"

namespace stagecoach {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {
    CHECK(capacity > 0) << "a queue without room can never pass anything on";
  }

  [[nodiscard]] bool TryPush(T&& element) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_ || elements_.size() >= capacity_) return false;
      elements_.push_back(std::move(element));
    }
    changed_.notify_one();
    return true;
  }

  std::optional<T> TryPop() {
    std::lock_guard<std::mutex> lock(mutex_);
    return PopLocked();
  }

  // Waits at most `timeout`; nothing on timeout or once closed and drained.
  std::optional<T> PopWithin(std::chrono::nanoseconds timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return closed_ || !elements_.empty(); });
    return PopLocked();
  }

  void Close() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  bool closed() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
  }

  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return elements_.size();
  }

 private:
  std::optional<T> PopLocked() {
    if (elements_.empty()) return std::nullopt;
    std::optional<T> element(std::move(elements_.front()));
    elements_.pop_front();
    return element;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;  // guards elements_ and closed_
  std::condition_variable changed_;
  std::deque<T> elements_;
  bool closed_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_THREADS_BOUNDED_QUEUE_H_
