#include "stage/backends/cuda/emulation/emulation.h"

#include <ucontext.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/errors/check.h"

namespace stagecoach::cuda::emulation {

Index thread_index, block_index, block_size, grid_size;

namespace {

constexpr size_t kStackBytes = 256 * 1024;
constexpr uint32_t kWarp = 32;

enum class Wait { kNone, kWarp, kBlock, kDone };

// Where a coroutine goes on. The compiler's jumps: swapcontext is a system call each time, and
// longjmp looks for handlers of thread cancellation.
using Place = void* [5];

struct Coroutine {
  ucontext_t context;  // to begin on the own stack
  Place place;
  bool begun = false;
  std::unique_ptr<char[]> stack;
  Wait wait = Wait::kNone;
  // Exchanges alternate between two slots: a lane may write its next value while a neighbour has
  // not read this one.
  uint64_t slots[2] = {0, 0};
  uint32_t exchanges = 0;
  bool in_or[2] = {false, false};  // likewise, of the block
  uint32_t ors = 0;
};

struct Block {
  std::vector<std::unique_ptr<Coroutine>> threads;  // kept from block to block
  std::vector<float> shared;
  ucontext_t unused;
  Place scheduler;
  const absl::FunctionRef<void()>* body = nullptr;
  Order order = Order::kAscending;
  uint64_t launches = 0;
  Recorder recorder;
};

Block& State() {
  static Block block;
  return block;
}

void WaitAt(Wait kind) {
  Coroutine& self = *State().threads[thread_index.x];
  self.wait = kind;
  if (__builtin_setjmp(self.place) == 0) __builtin_longjmp(State().scheduler, 1);
}

// One coroutine runs its place in every block of every grid: to begin one takes three system calls.
void Enter() {
  while (true) {
    (*State().body)();
    WaitAt(Wait::kDone);
  }
}

void Resume(Coroutine& thread) {
  if (__builtin_setjmp(State().scheduler) != 0) return;
  if (thread.begun) __builtin_longjmp(thread.place, 1);
  thread.begun = true;
  CHECK_EQ(getcontext(&thread.context), 0) << "coroutine";
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, Enter, 0);
  swapcontext(&State().unused, &thread.context);
}

// Runs a warp's threads as far as the next barrier of the block: warps drift apart as far as they
// may, which is what shows a missing barrier.
void RunWarp(uint32_t first) {
  Block& block = State();
  bool all_exchange = true;
  while (all_exchange) {
    for (uint32_t i = 0; i < kWarp; ++i) {
      thread_index.x = first + (block.order == Order::kAscending ? i : kWarp - 1 - i);
      Coroutine& thread = *block.threads[thread_index.x];
      if (thread.wait == Wait::kNone) Resume(thread);
      all_exchange = all_exchange && thread.wait == Wait::kWarp;
    }
    if (!all_exchange) return;
    for (uint32_t t = first; t < first + kWarp; ++t) block.threads[t]->wait = Wait::kNone;
  }
}

void RunBlock() {
  Block& block = State();
  for (uint32_t t = 0; t < block_size.x; ++t) {
    if (t == block.threads.size()) {
      block.threads.push_back(std::make_unique<Coroutine>());
      block.threads[t]->stack = std::make_unique<char[]>(kStackBytes);
    }
    block.threads[t]->wait = Wait::kNone;
    block.threads[t]->exchanges = 0;
    block.threads[t]->ors = 0;
  }
  uint32_t done = 0;
  while (done < block_size.x) {
    uint32_t at_barrier = 0;
    done = 0;
    for (uint32_t i = 0; i < block_size.x; i += kWarp) {
      RunWarp(block.order == Order::kAscending ? i : block_size.x - kWarp - i);
    }
    for (uint32_t t = 0; t < block_size.x; ++t) {
      Coroutine& thread = *block.threads[t];
      if (thread.wait == Wait::kDone) ++done;
      if (thread.wait != Wait::kBlock) continue;
      thread.wait = Wait::kNone;
      ++at_barrier;
    }
    CHECK(done == block_size.x || at_barrier == block_size.x)
        << "block " << block_index.x << ": of " << block_size.x << " threads " << at_barrier
        << " are at a barrier and " << done << " have ended";
  }
}

}  // namespace

void SetOrder(Order order) { State().order = order; }

cudaError_t RunGrid(LaunchShape shape, size_t shared_bytes, absl::FunctionRef<void()> body) {
  if (shape.grid == 0) return cudaSuccess;
  if (shape.block == 0 || shape.block > 1024 || shape.block % kWarp != 0) {
    return cudaErrorInvalidConfiguration;
  }
  block_size.x = shape.block;
  grid_size.x = shape.grid;
  Block& block = State();
  ++block.launches;
  block.body = &body;
  for (block_index.x = 0; block_index.x < shape.grid; ++block_index.x) {
    // What a block finds in shared memory is never meant.
    block.shared.assign((shared_bytes + sizeof(float) - 1) / sizeof(float), NAN);
    RunBlock();
  }
  return cudaSuccess;
}

uint64_t Launches() { return State().launches; }

void SetRecorder(Recorder recorder) { State().recorder = std::move(recorder); }

const Recorder* CurrentRecorder() { return State().recorder ? &State().recorder : nullptr; }

float* DynamicSharedMemory() { return State().shared.data(); }

void BlockBarrier() { WaitAt(Wait::kBlock); }

uint64_t ExchangeBits(uint64_t bits, int mask) {
  auto& threads = State().threads;
  Coroutine& self = *threads[thread_index.x];
  const uint32_t slot = self.exchanges++ % 2;
  self.slots[slot] = bits;
  WaitAt(Wait::kWarp);
  return threads[thread_index.x ^ static_cast<uint32_t>(mask)]->slots[slot];
}

uint32_t Ballot(bool value) {
  auto& threads = State().threads;
  Coroutine& self = *threads[thread_index.x];
  const uint32_t slot = self.exchanges++ % 2;
  self.slots[slot] = value ? 1 : 0;
  WaitAt(Wait::kWarp);
  const uint32_t first = thread_index.x / kWarp * kWarp;
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    lanes |= static_cast<uint32_t>(threads[first + lane]->slots[slot]) << lane;
  }
  return lanes;
}

bool BlockOr(bool value) {
  auto& threads = State().threads;
  Coroutine& self = *threads[thread_index.x];
  // Not in the slots of the warps: a warp that goes on from here exchanges again before the others
  // have read.
  const uint32_t slot = self.ors++ % 2;
  self.in_or[slot] = value;
  WaitAt(Wait::kBlock);
  bool any = false;
  for (uint32_t t = 0; t < block_size.x; ++t) any = any || threads[t]->in_or[slot];
  return any;
}

void Trap() {
  CHECK(false) << "a kernel stopped the device";
  __builtin_unreachable();
}

}  // namespace stagecoach::cuda::emulation
