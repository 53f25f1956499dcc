#include "base/numbers/machine_random.h"

#include <random>

namespace stagecoach {

uint64_t MachineRandom() {
  std::random_device device;
  return uint64_t{device()} << 32 | uint64_t{device()};
}

}  // namespace stagecoach
