// MachineRandom: random bits of the machine, for secrets and names that nobody else takes.
// RandomSource is what may stand in its place where a run must be the same when it is run again.
// Threads: any.
#ifndef STAGECOACH_BASE_NUMBERS_MACHINE_RANDOM_H_
#define STAGECOACH_BASE_NUMBERS_MACHINE_RANDOM_H_

#include <cstdint>
#include <functional>

namespace stagecoach {

using RandomSource = std::function<uint64_t()>;

uint64_t MachineRandom();

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_MACHINE_RANDOM_H_
