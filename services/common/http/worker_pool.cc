#include "services/common/http/worker_pool.h"

#include <system_error>
#include <utility>

namespace stagecoach {

WorkerPool::WorkerPool(std::string name, size_t most_threads, size_t most_waiting)
    : name_(std::move(name)), most_threads_(most_threads), most_waiting_(most_waiting) {}

WorkerPool::~WorkerPool() { Stop(); }

bool WorkerPool::Submit(std::function<void()> work) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return false;
    if (waiting_.size() >= idle_ && threads_.size() < most_threads_) {
      try {
        threads_.emplace_back(name_, [this] { Work(); });
        ++idle_;
      } catch (const std::system_error&) {
        // The system refuses another thread: those that are there do it.
      }
    }
    if (threads_.empty() || waiting_.size() >= idle_ + most_waiting_) return false;
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    --idle_;
    lock.unlock();
    work();
    work = nullptr;  // what it holds goes before it counts as done
    lock.lock();
    ++idle_;
  }
}

void WorkerPool::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (Thread& thread : threads_) thread.Join();  // nobody adds one any more
}

}  // namespace stagecoach
