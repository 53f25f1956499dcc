// JobNews: the coordinator's news of the whole job, with each renewal of the lease. It is a number
// that changes when any stage of the job makes progress. It decides how long a stage may stand
// still while it waits for a neighbour.
// Threads:   any; one at a time tells. Ask for the patience first, for the moves second. A caller
//            that sees that a silence ended then also sees that somebody may have moved meanwhile.
// Units:     nanoseconds of the clock.
#ifndef STAGECOACH_STAGE_RUNTIME_JOB_NEWS_H_
#define STAGECOACH_STAGE_RUNTIME_JOB_NEWS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "base/threads/clock.h"

namespace stagecoach {

class JobNews {
 public:
  explicit JobNews(const Clock* clock) : clock_(clock) {}

  void Tell(uint64_t number, double lease_seconds);
  uint64_t moves() const { return moves_; }  // another number: some stage got on, or may have
  // For how long nobody need move. Longer while the coordinator is silent: nobody knows then.
  int64_t PatienceNanos(double timeout_seconds) const;
  std::string Words(int64_t still_nanos) const;  // what is known of the others, for an error

 private:
  static constexpr int64_t kNotTold = -1;

  // Nothing was told for two leases: the coordinator is away, or waits for its disk.
  bool IsSilence(int64_t now_nanos) const;

  const Clock* const clock_;
  std::atomic<uint64_t> number_{0};
  std::atomic<uint64_t> moves_{0};
  std::atomic<int64_t> told_nanos_{kNotTold};  // when it told last
  std::atomic<int64_t> lease_nanos_{0};
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_JOB_NEWS_H_
