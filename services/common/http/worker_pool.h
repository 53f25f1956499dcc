// WorkerPool: threads that do work in the order in which it came. A thread starts when there is
// work for it, up to a number, and stays.
// Ownership: owns its threads. Stop finishes the waiting work, and joins; so does the destructor.
// Threads:   Submit from any thread, it never waits; Stop from one.
// Errors:    Submit: false if the line is full, if no thread can be had for it, or after Stop.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_WORKER_POOL_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_WORKER_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/threads/thread.h"

namespace stagecoach {

class WorkerPool {
 public:
  // name: of its threads; most_waiting: upper bound of the work that waits for a free thread.
  WorkerPool(std::string name, size_t most_threads, size_t most_waiting);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();
  bool Submit(std::function<void()> work);
  void Stop();

 private:
  void Work();

  const std::string name_;
  const size_t most_threads_, most_waiting_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<Thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_WORKER_POOL_H_
