// RunSeed: one seed from its scenario to the verdict.
// Threads: one.
#ifndef STAGECOACH_TESTS_SIMULATION_SIMULATION_H_
#define STAGECOACH_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/world.h"

namespace stagecoach {

struct SeedResult {
  std::vector<std::string> violations;
  WorldEnding ending;
  std::string
      report;  // of violations: the scenario, what is wrong, and the line that replays it; else empty
};

SeedResult RunSeed(uint64_t seed, const World::Options& options = {});
std::string ReplayLine(uint64_t seed);

// From now on a CHECK that fails prints the line that replays the seed at hand.
void TellSeedOnAbort();

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_SIMULATION_H_
