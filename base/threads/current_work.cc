#include "base/threads/current_work.h"

#include <algorithm>

namespace stagecoach {
namespace {

thread_local CurrentWork* current = nullptr;

}  // namespace

CurrentWork::View CurrentWork::Look() const {
  View view;
  for (size_t i = 0; i + 1 < view.job.size(); ++i) {
    view.job[i] = job_[i].load(std::memory_order_relaxed);
  }
  view.term = term_.load(std::memory_order_relaxed);
  view.generation = generation_.load(std::memory_order_relaxed);
  view.step = step_.load(std::memory_order_relaxed);
  view.micro_batch = micro_batch_.load(std::memory_order_relaxed);
  view.instruction = instruction_.load(std::memory_order_relaxed);
  view.operation = operation_.load(std::memory_order_relaxed);
  return view;
}

void CurrentWork::Begin(const Fence& fence) {
  SetInstruction(nullptr, MicroBatchId());
  for (size_t i = 0; i < job_.size(); ++i) {
    job_[i].store(i < std::min(fence.job.size(), kMaxJobNameLength) ? fence.job[i] : '\0',
                  std::memory_order_relaxed);
  }
  term_.store(fence.term, std::memory_order_relaxed);
  generation_.store(fence.generation, std::memory_order_relaxed);
  step_.store(fence.step, std::memory_order_relaxed);
}

void CurrentWork::SetInstruction(const char* instruction, MicroBatchId micro_batch) {
  SetOperation(nullptr);
  micro_batch_.store(micro_batch.value, std::memory_order_relaxed);
  instruction_.store(instruction, std::memory_order_relaxed);
}

CurrentWorkScope::CurrentWorkScope(CurrentWork* work) : outer_(current) {
  current = work;
  stack_t there{};
  if (sigaltstack(nullptr, &there) != 0 || (there.ss_flags & SS_DISABLE) == 0) return;
  stack_ = std::make_unique<std::array<char, size_t{64} << 10>>();
  stack_t ours{};
  ours.ss_sp = stack_->data();
  ours.ss_size = stack_->size();
  sigaltstack(&ours, nullptr);
}

CurrentWorkScope::~CurrentWorkScope() {
  current = outer_;
  if (stack_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

void BeginWork(const Fence& fence) {
  if (current != nullptr) current->Begin(fence);
}

void NoteInstruction(const char* instruction, MicroBatchId micro_batch) {
  if (current != nullptr) current->SetInstruction(instruction, micro_batch);
}

void NoteOperation(const char* operation) {
  if (current != nullptr) current->SetOperation(operation);
}

void EndWork() { NoteInstruction(nullptr); }

}  // namespace stagecoach
