// Oracle: what may become of a world: the undisturbed run's results, or an error that its faults
// justify.
// Threads: pure, but for TruthOf, which runs a world the first time: no other one may live then.
#ifndef STAGECOACH_TESTS_SIMULATION_ORACLE_H_
#define STAGECOACH_TESTS_SIMULATION_ORACLE_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simulation/scenario.h"
#include "tests/simulation/world.h"

namespace stagecoach {

// What does not depend on stages, schedules, faults and recoveries, to the last bit.
struct Truth {
  using Step = std::tuple<double, double, double>;  // loss, norm of the gradients, learning rate
  std::string digest;                               // of the weights
  // By step, the tensors of a checkpoint there, the optimizer's too.
  std::map<uint64_t, std::string> checkpoints;
  std::map<uint64_t, Step> steps;
  std::map<uint64_t, std::vector<double>> evaluations;  // loss and measures
};
Truth ResultOf(const JobEnding& ending);
const Truth& TruthOf(int family);

// Virtual seconds behind the last fault within which a job has to end.
inline constexpr double kBoundSeconds = 200;
// And where faults may last for ever, for so long is it looked at: a job waits a minute for stages.
inline constexpr double kSafetySeconds = 100;

// What must not be, a line each; empty: all is well.
std::vector<std::string> Violations(const Scenario& scenario, const WorldEnding& ending);

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_ORACLE_H_
