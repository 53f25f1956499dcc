// CallFaults: the faults of one host's calls to the store. A server refuses a call, its request does
// not arrive, its answer gets lost after the work was done, or the caller dies at it.
// Ownership: borrows the random numbers.
// Threads:   one.
#ifndef STAGECOACH_TESTS_SIMULATION_STORE_CALL_FAULTS_H_
#define STAGECOACH_TESTS_SIMULATION_STORE_CALL_FAULTS_H_

#include "absl/status/status.h"
#include "tests/simulation/host/seeded_random.h"

namespace stagecoach {

class CallFaults {
 public:
  struct Fate {
    bool arrives = true;                               // the server does it
    bool returns = true;                               // and its answer comes
    bool dead = false;                                 // nobody waits for the answer: no more calls
    absl::StatusCode refusal = absl::StatusCode::kOk;  // the server's answer in place of the work
  };

  explicit CallFaults(SeededRandom* random) : random_(*random) {}

  void Refuse(double share, absl::StatusCode code) {  // 0: none
    refused_ = share;
    code_ = code;
  }
  void Lose(double share) { lost_ = share; }  // half of them before the work
  // The caller dies in this call, counted from 1, and perhaps its work is done.
  void DieAt(int call, bool done) {
    dies_at_ = call;
    last_is_done_ = done;
  }
  void Live() { dies_at_ = 0; }
  // None would be answered now.
  bool all_fail() const { return refused_ >= 1; }

  Fate Next() {
    Fate fate;
    if (dies_at_ != 0 && --dies_at_ <= 0) {
      fate = {.arrives = dies_at_ == 0 && last_is_done_, .returns = false, .dead = true};
      dies_at_ = -1;  // and so in all calls behind it
      return fate;
    }
    if (refused_ > 0 && random_.Chance(refused_)) {
      fate.refusal = code_;
    } else if (lost_ > 0 && random_.Chance(lost_)) {
      fate.arrives = random_.Chance(0.5);
      fate.returns = false;
    }
    return fate;
  }

 private:
  SeededRandom& random_;
  double refused_ = 0, lost_ = 0;
  absl::StatusCode code_ = absl::StatusCode::kUnavailable;
  int dies_at_ = 0;  // 0: it lives; -1: it is dead
  bool last_is_done_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_STORE_CALL_FAULTS_H_
