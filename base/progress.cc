#include "base/progress.h"

namespace stagecoach {
namespace {

thread_local ProgressCounter* current = nullptr;

}  // namespace

ProgressScope::ProgressScope(ProgressCounter* counter) : outer_(current) { current = counter; }
ProgressScope::~ProgressScope() { current = outer_; }

void TickProgress() {
  if (current != nullptr) current->Tick();
}

}  // namespace stagecoach
