// TaskThread: a named thread that runs tasks in order until its owner closes it. It wakes up now
// and then; only Close ends it.
// Ownership: all that a task borrows must outlive Close.
// Threads:   TryPost and idle_turns from any thread; Close (and the end) from one, not from a task.
// Errors:    a full queue and a closed thread refuse a task; accepted tasks run, also while
//            closing.
#ifndef STAGECOACH_BASE_THREADS_TASK_THREAD_H_
#define STAGECOACH_BASE_THREADS_TASK_THREAD_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/threads/bounded_queue.h"
#include "base/threads/thread.h"

namespace stagecoach {

class TaskThread {
 public:
  using Task = std::function<void()>;
  // turn: it wakes up at least this often.
  TaskThread(const std::string& name, size_t capacity,
             std::chrono::nanoseconds turn = std::chrono::seconds(1))
      : queue_(capacity), thread_(name, [this, turn] { Run(turn); }) {}
  ~TaskThread() { Close(); }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  [[nodiscard]] bool TryPost(Task task) { return queue_.TryPush(std::move(task)); }
  void Close() {  // runs accepted tasks; safe to call twice
    queue_.Close();
    thread_.Join();
  }
  uint64_t idle_turns() const { return idle_turns_; }  // turns that found nothing to do

 private:
  void Run(std::chrono::nanoseconds turn) {
    while (true) {
      const bool last = queue_.closed();  // nothing is added after this
      if (const std::optional<Task> task = queue_.PopWithin(turn)) {
        (*task)();
      } else if (last) {
        return;
      } else {
        ++idle_turns_;
      }
    }
  }

  BoundedQueue<Task> queue_;
  std::atomic<uint64_t> idle_turns_{0};
  Thread thread_;  // last: it uses all of the above
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_THREADS_TASK_THREAD_H_
