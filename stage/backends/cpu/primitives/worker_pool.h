// WorkerPool: the compute threads of a back end. Run() gives out numbered tasks. Chance decides
// which thread takes a task, so a task's result must not depend on it.
// Ownership: threads are joined by the destructor.
// Threads:   Run from one thread at a time (the executor's), which works along.
// Determinism: every compute thread tells OpenMP to use one thread. So a library call inside a task
//            never splits work by the number of cores. Denormals and rounding are left at the
//            processor's defaults: a new thread inherits them from its creator.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_WORKER_POOL_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_WORKER_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/threads/thread.h"

namespace stagecoach::cpu {

class WorkerPool {
 public:
  using Body = absl::FunctionRef<void(int64_t task, int worker)>;

  // The caller of Run is one of the threads. The others run at `nice`: compute must not hold up
  // I/O.
  explicit WorkerPool(int threads, int nice = 0);
  ~WorkerPool();

  int threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Returns when body has run for every task of [0, tasks). worker < threads(); the caller's is 0.
  // Every task of the caller's counts as progress (base/threads/progress.h).
  void Run(int64_t tasks, Body body);

 private:
  struct Batch {
    int64_t tasks;
    Body body;
    std::atomic<int64_t> next{0};
    int working = 0;  // guarded by mutex_
    Batch(int64_t tasks, Body body) : tasks(tasks), body(body) {}
  };

  void WorkerLoop(int worker);
  static void Work(Batch& batch, int worker);

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Batch* batch_ = nullptr;   // guarded by mutex_; null between runs
  uint64_t generation_ = 0;  // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_
  std::vector<Thread> threads_;
};

// While a SerialOpenMp lives, OpenMP uses one thread for calls of the current thread.
class SerialOpenMp {
 public:
  SerialOpenMp();
  ~SerialOpenMp();
  SerialOpenMp(const SerialOpenMp&) = delete;
  SerialOpenMp& operator=(const SerialOpenMp&) = delete;

 private:
  const int before_;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_WORKER_POOL_H_
