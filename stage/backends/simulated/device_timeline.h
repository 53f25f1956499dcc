// DeviceTimeline: the end times of operations of a device that does not exist. Operations run one
// after the other. If the host comes back for the next one at once, it counts as queued in time. So
// neither the host's work between two operations nor a late wake-up adds up.
// Ownership: borrows the clock.  Threads: one.  Units: nanoseconds of the monotonic clock.
#ifndef STAGECOACH_STAGE_BACKENDS_SIMULATED_DEVICE_TIMELINE_H_
#define STAGECOACH_STAGE_BACKENDS_SIMULATED_DEVICE_TIMELINE_H_

#include <cstdint>
#include <functional>

#include "base/threads/clock.h"

namespace stagecoach {

class DeviceTimeline {
 public:
  // Returns at that time or later.
  using SleepUntil = std::function<void(int64_t monotonic_nanos)>;

  static constexpr int64_t kAtOnceNanos = 200'000;  // host work that a queue would have hidden
  static constexpr int64_t kShortNanos = 50'000;    // less is not worth a wait
  // A late wake-up is made up for within this bound. More delay counts as the host's own work.
  static constexpr int64_t kBehindNanos = 2'000'000;
  // A longer sleep is cut, with a tick of progress after each part: a real device would show
  // progress too.
  static constexpr int64_t kSleepNanos = 500'000'000;

  DeviceTimeline(const Clock* clock, SleepUntil sleep_until);

  void Queue(int64_t nanos);  // queues an operation of this length
  void Wait();                // waits for the queued operations, unless they end shortly
  void Finish();              // waits for them; later operations begin here

 private:
  void SleepToTheEnd();

  const Clock* const clock_;
  const SleepUntil sleep_until_;
  int64_t busy_until_nanos_;
  int64_t returned_nanos_;  // when the host last returned from a call
};

// For SystemClock: sleeps without the kernel's usual 50 microseconds of slack.
void PreciseSleepUntil(int64_t monotonic_nanos);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_SIMULATED_DEVICE_TIMELINE_H_
