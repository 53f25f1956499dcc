// Scenario: what a seed asks for, as a value: the jobs, the cluster, and all faults with their
// times. Two modes:
//   liveness  every fault heals, the last one by kLastHealSeconds: each job must then succeed, or
//             have been cancelled by its user, within a bound; an error needs a fault that no
//             retry can mend (oracle.h)
//   safety    faults may last for ever: a job may also end with an error that they justify, or not
//             at all if none of its limits is up, but never with other results
// Ownership: plain values.
// Threads:   pure functions.
// Units:     virtual seconds.
#ifndef STAGECOACH_TESTS_SIMULATION_SCENARIO_H_
#define STAGECOACH_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plan/job/job_spec.h"
#include "tests/simulation/fault.h"
#include "tests/simulation/store/store_form.h"

namespace stagecoach {

// Networks and trainings whose results do not depend on anything else that a scenario draws.
inline constexpr int kFamilies = 6;
inline constexpr char kDataFile[] = "text";
std::string DataText();            // what the file of the jobs' data holds
JobSpec SpecOfFamily(int family);  // in one stage, without a checkpoint on the way

struct ScenarioJob {
  std::string id;
  int family = 0;
  JobSpec spec;
  double submit_at = 0;
  double cancel_at = Fault::kForever;
  int64_t held_stages = 0;  // with so many it goes on where it was held; 0: as many as it says
};

struct Scenario {
  uint64_t seed = 0;
  StoreForm store = StoreForm::kFolder;
  bool safety = false;
  bool holds =
      false;        // coordinators that are started again hold their jobs until a user resumes them
  double pace = 1;  // what all stages' work takes, in the place of a few milliseconds
  int stages = 1;   // hosts 1 to so many have a stage's process; host 0 is the coordinator's
  std::vector<ScenarioJob> jobs;
  std::vector<Fault> faults;  // by time
  double LastHeal() const;    // of the faults that heal
};

Scenario ScenarioOf(uint64_t seed);
Scenario Undisturbed(int family);  // the truth of a family
std::string ScenarioText(const Scenario& scenario);

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_SCENARIO_H_
