// MachineRandom: random bits of the machine, for secrets and unique names. RandomSource replaces it
// if a run must be repeatable.
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
