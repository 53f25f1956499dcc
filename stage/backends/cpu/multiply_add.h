// y += a * b, element by element, for sums that are taken channel by channel.
// Threads: pure functions of their arguments.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_MULTIPLY_ADD_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_MULTIPLY_ADD_H_

#include <cstdint>

#include "base/numbers/bfloat16.h"

namespace stagecoach::cpu {

void MultiplyAdd(const float* a, const float* b, float* y, int64_t n);
void MultiplyAdd(const Bfloat16* a, const float* b, float* y, int64_t n);
void MultiplyAdd(const Bfloat16* a, const Bfloat16* b, float* y, int64_t n);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_MULTIPLY_ADD_H_
