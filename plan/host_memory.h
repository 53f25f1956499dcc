// Host memory: what a stage on a processor takes beside what its layers compute with (stage/backends/cpu): a convolution's
// weight in the library's packing, or shares of its gradient, for one call at a time. Other operations take little.
// Units:     bytes.
// Errors:    none; sizes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_PLAN_HOST_MEMORY_H_
#define STAGECOACH_PLAN_HOST_MEMORY_H_

#include <cstdint>

#include "network/network.h"

namespace stagecoach {

// Of layers [first, last); 0 without convolutions.
int64_t HostWorkspaceBytes(const Network& model, int first, int last, int64_t samples);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_HOST_MEMORY_H_
