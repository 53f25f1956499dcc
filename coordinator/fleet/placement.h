// Placement: decides which waiting job gets which stages; pure. Jobs that recover come first, then
// those submitted, in order.
// - If a job cannot be served now but could be once others end, it keeps the free stages from later
//   jobs. A job that wants more stages than there are holds nobody up.
// - A stage that is known not to see the folder of checkpoints is passed over while the others
//   suffice for a job. The others are those alive. For a job that recovers, they are those that it
//   could have now. A job that needs such a stage gets it, because the folder may be there by now.
//   If it is not, the job learns the reason.
// - A waiting job keeps what it has left of its placement, unless a job before it can be served
//   with that. Otherwise two jobs that each hold what the other lacks would wait for ever.
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
  int wanted = 0;  // 0: all free stages, at least `least`
  int useful = 1;  // more stages than this are of no use
  bool recovering = false;
  bool accepts_fewer = false;         // than wanted: down to `least`
  std::vector<std::string> suspects;  // names to take only if there is no other
  int least = 1;
  std::vector<StageProcess> unfit;  // not to take
  std::vector<std::string>
      holders;  // names to take before others: they have a part of the job in memory
  // True while the job saves snapshots from memory as a checkpoint. It takes no stages meanwhile.
  // Stages that it could have stay free for it.
  bool saving = false;
};

struct StageOffer {
  std::string job;
  // May include stages of later jobs (Fleet::HolderOf), which lose them.
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
