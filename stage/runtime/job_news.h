// JobNews: the coordinator's news of the whole job, with each renewal of the lease. It is a number
// that changes when any stage of the job makes progress. It decides how long a stage may stand
// still while it waits for a neighbour.
// Threads:   any; one at a time tells. Ask PatienceNanos first, moves() second. Then a caller that
//            sees the end of a silence also sees that a stage may have moved meanwhile.
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
  uint64_t moves() const { return moves_; }  // changes if a stage made progress, or may have
  // The time that may pass without progress. It is longer while the coordinator is silent.
  int64_t PatienceNanos(double timeout_seconds) const;
  std::string Words(int64_t still_nanos) const;  // the news of other stages, for an error

 private:
  static constexpr int64_t kNotTold = -1;

  // No news for two leases: the coordinator is away, or waits for its disk.
  bool IsSilence(int64_t now_nanos) const;

  const Clock* const clock_;
  std::atomic<uint64_t> number_{0};
  std::atomic<uint64_t> moves_{0};
  std::atomic<int64_t> told_nanos_{kNotTold};  // time of the last news
  std::atomic<int64_t> lease_nanos_{0};
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_JOB_NEWS_H_
