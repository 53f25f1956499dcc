#include "stage/backends/cpu/primitives/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/threads/progress.h"
#include "stage/backends/cpu/primitives/openmp.h"

namespace stagecoach::cpu {

SerialOpenMp::SerialOpenMp() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
SerialOpenMp::~SerialOpenMp() {
  if (before_ != 1) omp_set_num_threads(before_);
}

WorkerPool::WorkerPool(int threads, int nice) {
  for (int worker = 1; worker < threads; ++worker) {
    threads_.emplace_back("compute-" + std::to_string(worker), [this, worker, nice] {
      // Best effort: a refusal costs some speed, nothing else.
      if (nice != 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
      const SerialOpenMp serial;
      WorkerLoop(worker);
    });
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (Thread& thread : threads_) thread.Join();
}

void WorkerPool::Run(int64_t tasks, Body body) {
  const SerialOpenMp serial;
  Batch batch(tasks, body);
  const bool shared = tasks > 1 && !threads_.empty();
  if (shared) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      batch_ = &batch;
      ++generation_;
    }
    wake_.notify_all();
  }
  Work(batch, 0);
  if (!shared) return;
  // No worker joins a batch any more once batch_ is null; the ones inside must leave first.
  std::unique_lock<std::mutex> lock(mutex_);
  batch_ = nullptr;
  idle_.wait(lock, [&] { return batch.working == 0; });
}

void WorkerPool::Work(Batch& batch, int worker) {
  for (;;) {
    const int64_t task = batch.next.fetch_add(1, std::memory_order_relaxed);
    if (task >= batch.tasks) return;
    batch.body(task, worker);
    TickProgress();  // of the caller's thread only: the others count for nobody
  }
}

void WorkerPool::WorkerLoop(int worker) {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || (batch_ != nullptr && generation_ != seen); });
    if (stopping_) return;
    seen = generation_;
    Batch& batch = *batch_;
    ++batch.working;
    lock.unlock();
    Work(batch, worker);
    lock.lock();
    if (--batch.working == 0) idle_.notify_one();
  }
}

}  // namespace stagecoach::cpu
