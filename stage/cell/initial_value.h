// InitialValue: the numbers that training begins with.
// Threads: if there are many values, one thread a core makes them; values do not depend on that.
#ifndef STAGECOACH_STAGE_CELL_INITIAL_VALUE_H_
#define STAGECOACH_STAGE_CELL_INITIAL_VALUE_H_

#include <cstdint>
#include <span>

#include "network/network.h"

namespace stagecoach {

// Sets the initial values of a parameter's elements from `first` on. They are a pure function of
// (seed, layer, ParameterSpec), so they do not depend on K. Stream: {seed, step 0, micro_batch
// 0xffffffff, layer, operation 0x8000 | index}.
void SetInitialValues(const ParameterSpec& spec, uint64_t seed, int layer, int64_t first,
                      std::span<float> values);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_INITIAL_VALUE_H_
