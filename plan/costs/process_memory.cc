#include "plan/costs/process_memory.h"

#include "plan/costs/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
// Measured on x86-64, rounded up: 31 MiB of the program's file, the rest of heap, stacks and
// generated code.
constexpr int64_t kProgramBytes = 72 * kMebibyte;
constexpr int64_t kThreadBytes = 4 * kMebibyte;  // the library packs operands of products there
constexpr int64_t kLinkBytes = 8 * kMebibyte;    // gRPC's frames at a boundary
constexpr int64_t kSnapshots = 2;                // of a cell, at most

// Parameters in float32, and what the optimizer keeps. In bfloat16 `parameters` has the copy that
// operations read as well.
int64_t StateBytes(const StageMemory& memory) {
  return SaturatingAdd(memory.parameters, memory.optimizer);
}

}  // namespace

int64_t ProcessBytes(const StageMemory& own, const StageMemory* before, int threads) {
  int64_t bytes = SaturatingAdd(own.total(), SaturatingMultiply(kSnapshots, StateBytes(own)));
  bytes = SaturatingAdd(bytes, kProgramBytes + threads * kThreadBytes);
  if (before == nullptr) return bytes;
  bytes = SaturatingAdd(bytes, SaturatingMultiply(kSnapshots, StateBytes(*before)));
  return SaturatingAdd(bytes, 2 * kLinkBytes);
}

}  // namespace stagecoach
