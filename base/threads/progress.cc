#include "base/threads/progress.h"

namespace stagecoach {
namespace {

thread_local ProgressCounter* current_counter = nullptr;

}  // namespace

ProgressScope::ProgressScope(ProgressCounter* counter) : outer_(current_counter) {
  current_counter = counter;
}
ProgressScope::~ProgressScope() { current_counter = outer_; }

void TickProgress() {
  if (current_counter != nullptr) current_counter->Tick();
}

}  // namespace stagecoach
