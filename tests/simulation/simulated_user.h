// SimulatedUser: who submits a job, watches it to its end, resumes it where it is held, and perhaps
// cancels it. Calls that the coordinator does not answer are made again, as a client does; a watch
// goes on behind the last record that was seen.
// Ownership: borrows; outlives no world.
// Threads:   one.
// Units:     virtual seconds.
#ifndef STAGECOACH_TESTS_SIMULATION_SIMULATED_USER_H_
#define STAGECOACH_TESTS_SIMULATION_SIMULATED_USER_H_

#include <functional>
#include <string>
#include <vector>

#include "coordinator/job/view/job_view.h"
#include "tests/simulation/coordinator_process.h"
#include "tests/simulation/host/virtual_time.h"
#include "tests/simulation/scenario.h"

namespace stagecoach {

class SimulatedUser {
 public:
  struct Parts {
    VirtualTime* time = nullptr;
    std::function<CoordinatorProcess*()> coordinator;  // null: none is there
    uint64_t first_watch = 1;                          // numbers of watches, from there on
  };
  SimulatedUser(const Parts& parts, const ScenarioJob& job);

  const ScenarioJob& job() const { return job_; }
  bool accepted() const { return accepted_; }
  bool refused() const {
    return refused_;
  }  // there is no checkpoint to go on from, and it does not try again
  bool ended() const { return ended_; }          // the record of the end was seen
  bool cancelled() const { return cancelled_; }  // the coordinator has said so
  const std::vector<JobRecord>& watched() const { return watched_; }
  // What the coordinator must never say: that a job which was accepted is not known.
  const std::string& complaint() const { return complaint_; }
  void ForgetWhatWasSeen() {  // the journal is a copy from before
    watched_.clear();
    cancelled_ = cancel_answered_ = ended_ = false;
  }

 private:
  // Answers of a coordinator that was cut off meanwhile do not come.
  bool Hears(uint64_t process) const;
  void Look();
  void Submit(CoordinatorProcess& coordinator);
  void Watch(CoordinatorProcess& coordinator);
  void Cancel(CoordinatorProcess& coordinator);
  void ResumeIfHeld(CoordinatorProcess& coordinator);

  const Parts parts_;
  const ScenarioJob job_;
  bool accepted_ = false, refused_ = false, ended_ = false, cancel_answered_ = false,
       cancelled_ = false;
  uint64_t asked_ = 0;    // the process where a call is under way
  uint64_t watches_ = 0;  // and where a watch is
  double asked_at_ = 0;
  uint64_t next_watch_;
  std::vector<JobRecord> watched_;
  std::string complaint_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_SIMULATED_USER_H_
