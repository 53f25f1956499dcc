// InitialValue: the numbers that training begins with.
// Threads: made by one thread a core where there are many; the values do not depend on it.
#ifndef STAGECOACH_STAGE_CELL_INITIAL_VALUE_H_
#define STAGECOACH_STAGE_CELL_INITIAL_VALUE_H_

#include <cstdint>
#include <vector>

#include "network/network.h"

namespace stagecoach {

// Initial value of a parameter: a pure function of (seed, layer, ParameterSpec), so it does not
// depend on K. Stream: {seed, step 0, micro_batch 0xffffffff, layer, operation 0x8000 | index}.
std::vector<float> InitialValue(const ParameterSpec& spec, uint64_t seed, int layer);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_INITIAL_VALUE_H_
