// Mailbox: work for one thread, in order. It has two doors. Post is for answers to the thread's own
// questions, so their number is bounded. TryPost is for requests from outside. It refuses them if
// too many wait.
// Ownership: shared by the thread that drains it and all that will post answers.
// Threads:   thread-safe; nothing runs under the lock.
// Errors:    after Close both doors refuse; what was accepted is still handed out.
#ifndef STAGECOACH_COORDINATOR_LOOP_MAILBOX_H_
#define STAGECOACH_COORDINATOR_LOOP_MAILBOX_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace stagecoach {

class Mailbox {
 public:
  using Work = std::function<void()>;
  static constexpr size_t kMaxWaiting = 10000;

  explicit Mailbox(size_t most = kMaxWaiting) : most_(most) {}  // of what comes through TryPost

  bool Post(Work work) { return Add(std::move(work), false); }
  bool TryPost(Work work) { return Add(std::move(work), true); }

  // Waits for work at most `timeout`; takes all there is. False: closed and empty.
  bool Take(std::chrono::nanoseconds timeout, std::vector<Work>* work) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return closed_ || !waiting_.empty(); });
    work->clear();
    work->swap(waiting_);
    return !closed_ || !work->empty();
  }

  void Close() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  bool full() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.size() >= most_;
  }

  bool closed() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
  }

 private:
  bool Add(Work work, bool limited) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_ || (limited && waiting_.size() >= most_)) return false;
      waiting_.push_back(std::move(work));
    }
    changed_.notify_one();
    return true;
  }

  const size_t most_;
  mutable std::mutex mutex_;  // guards waiting_ and closed_
  std::condition_variable changed_;
  std::vector<Work> waiting_;
  bool closed_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_MAILBOX_H_
