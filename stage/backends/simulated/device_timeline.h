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
  // Returns at the earliest at that time.
  using SleepUntil = std::function<void(int64_t monotonic_nanos)>;

  static constexpr int64_t kAtOnceNanos = 200'000;  // host work that a queue would have hidden
  static constexpr int64_t kShortNanos = 50'000;    // less is not worth a wait
  // So much a late wake-up may make up for later. Who is further behind was kept by its own work.
  static constexpr int64_t kBehindNanos = 2'000'000;
  // A longer sleep is cut, with a tick of progress after each part: a real device would be seen to
  // work, too.
  static constexpr int64_t kSleepNanos = 500'000'000;

  DeviceTimeline(const Clock* clock, SleepUntil sleep_until);

  void Queue(int64_t nanos);  // an operation of this length
  void Wait();                // for what is queued, unless it ends shortly
  void Finish();              // for what is queued; what comes next begins here

 private:
  void SleepToTheEnd();

  const Clock* const clock_;
  const SleepUntil sleep_until_;
  int64_t busy_until_nanos_;
  int64_t returned_nanos_;  // when the host last came back from here
};

// For SystemClock: sleeps without the kernel's usual 50 microseconds of slack.
void PreciseSleepUntil(int64_t monotonic_nanos);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_SIMULATED_DEVICE_TIMELINE_H_
