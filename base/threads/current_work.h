// CurrentWork: the current work of a stage's executor. A handler of a fatal signal may read its
// fields at any moment. Code at work calls NoteInstruction() and NoteOperation() and knows no
// reader. The scope of its thread chooses the CurrentWork, as for TickProgress()
// (base/threads/progress.h).
// Ownership: a scope borrows its CurrentWork. An instruction's text is borrowed until the next
//            BeginWork, NoteInstruction or EndWork, an operation's until the next note of any kind.
// Threads:   one thread notes; Look() from any thread, and from a signal handler.
// Cost:      a few stores; no lock, no allocation.
// Errors:    a look during BeginWork() may see parts of two jobs. A look during NoteInstruction()
//            may see the new micro-batch with the old instruction.
#ifndef STAGECOACH_BASE_THREADS_CURRENT_WORK_H_
#define STAGECOACH_BASE_THREADS_CURRENT_WORK_H_

#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "base/job_name.h"

namespace stagecoach {

class CurrentWork {
 public:
  // A copy as plain values, for a signal handler.
  struct View {
    std::array<char, kMaxJobNameLength + 1> job{};  // ends with 0
    uint64_t term = 0, generation = 0, step = 0;
    int32_t micro_batch = -1;           // -1: none
    const char* instruction = nullptr;  // null: no work
    const char* operation = nullptr;    // null: none
  };
  View Look() const;

  void Begin(const Fence& fence);  // begins this work; no instruction yet
  void SetInstruction(const char* instruction, MicroBatchId micro_batch);
  void SetOperation(const char* operation) {
    operation_.store(operation, std::memory_order_relaxed);
  }

 private:
  template <typename T>
  struct Readable : std::atomic<T> {
    using std::atomic<T>::atomic;
    static_assert(std::atomic<T>::is_always_lock_free, "a signal handler reads it");
  };
  std::array<Readable<char>, kMaxJobNameLength + 1> job_{};
  Readable<uint64_t> term_{0}, generation_{0}, step_{0};
  Readable<int32_t> micro_batch_{-1};
  Readable<const char*> instruction_{nullptr}, operation_{nullptr};
};

// While it lives, notes of this thread go into `work`. Meanwhile the thread has a stack for signal
// handlers, so that a stack overflow can be reported too.
class CurrentWorkScope {
 public:
  explicit CurrentWorkScope(CurrentWork* work);
  ~CurrentWorkScope();
  CurrentWorkScope(const CurrentWorkScope&) = delete;
  CurrentWorkScope& operator=(const CurrentWorkScope&) = delete;

 private:
  CurrentWork* const outer_;
  std::unique_ptr<std::array<char, size_t{64} << 10>> stack_;  // null: the thread had one
};

// These note in the CurrentWork of the calling thread. Without a scope they do nothing. A new
// instruction ends the operation; a new operation leaves the instruction.
void BeginWork(const Fence& fence);
void NoteInstruction(const char* instruction, MicroBatchId micro_batch = MicroBatchId());
void NoteOperation(const char* operation);
void EndWork();

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_THREADS_CURRENT_WORK_H_
