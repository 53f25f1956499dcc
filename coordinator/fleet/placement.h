// Placement: which waiting job gets which stages; pure. Jobs that recover come first, then those
// submitted, in order. A job that cannot be served now but could be once others end keeps the free
// stages from later jobs; one that wants more stages than there are holds nobody up. A stage that is
// known not to see the folder of checkpoints is passed over while the others suffice for a job (those
// alive; for a job that recovers, those that it could have now); one that needs it gets it, for the
// folder may be there by now, and learns the reason if it is not. What a job that waits has left of its placement is its own,
// unless a job before it can be served with that: else two that each hold what the other lacks would wait for ever.
// Ownership: values.
#ifndef STAGECOACH_COORDINATOR_FLEET_PLACEMENT_H_
#define STAGECOACH_COORDINATOR_FLEET_PLACEMENT_H_

#include <span>
#include <string>
#include <vector>

#include "coordinator/fleet/fleet.h"

namespace stagecoach {

struct WaitingJob {
  std::string id;
  int wanted = 0;  // 0: every one that is free, `least` of them
  int layers = 1;  // more stages than this are of no use
  bool recovering = false;
  bool accepts_fewer = false;         // than wanted: down to `least`
  std::vector<std::string> suspects;  // names to take only if there is no other
  int least = 1;
  std::vector<StageProcess> unfit;  // not to take
  std::vector<std::string>
      holders;  // names to take before others: they have a part of the job in memory
  // It writes what memory holds as a checkpoint and takes no stages meanwhile. Those that it could have stay free for it.
  bool saving = false;
};

struct StageOffer {
  std::string job;
  // Some may be held by jobs that wait behind this one (Fleet::HolderOf): these lose them.
  std::vector<StageRegistration> stages;  // by name, suspects last if there are no holders
  std::vector<std::string> passed_over;   // free, but known not to see the folder of checkpoints
};

struct Shortage {
  std::string job;
  int needed = 0, ready = 0, alive = 0;
  std::vector<std::string> passed_over;
  std::vector<StageRegistration> stages = {};  // those that are ready
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

struct Placement {
  std::vector<StageOffer> offers;
  std::vector<Shortage> shortages;
};

// `jobs` in the order of submission.
Placement PlaceJobs(const Fleet& fleet, std::span<const WaitingJob> jobs);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_FLEET_PLACEMENT_H_
