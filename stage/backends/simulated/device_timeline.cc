#include "stage/backends/simulated/device_timeline.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/errors/check.h"
#include "base/threads/progress.h"

namespace stagecoach {

DeviceTimeline::DeviceTimeline(const Clock* clock, SleepUntil sleep_until)
    : clock_(clock),
      sleep_until_(std::move(sleep_until)),
      busy_until_nanos_(clock->MonotonicNanos()),
      returned_nanos_(busy_until_nanos_) {}

void DeviceTimeline::Queue(int64_t nanos) {
  CHECK(nanos >= 0) << "an operation takes time";
  const int64_t now = clock_->MonotonicNanos();
  const bool queued_in_time = now - returned_nanos_ <= kAtOnceNanos;
  if (!queued_in_time) busy_until_nanos_ = std::max(busy_until_nanos_, now);
  busy_until_nanos_ += nanos;
  // From here to Wait the host works for this operation, however long it takes.
  returned_nanos_ = now;
}

void DeviceTimeline::SleepToTheEnd() {
  int64_t now = clock_->MonotonicNanos();
  while (busy_until_nanos_ - now > kSleepNanos) {
    sleep_until_(now + kSleepNanos);
    TickProgress();
    now = clock_->MonotonicNanos();
  }
  sleep_until_(busy_until_nanos_);
}

void DeviceTimeline::Wait() {
  if (busy_until_nanos_ - clock_->MonotonicNanos() >= kShortNanos) SleepToTheEnd();
  returned_nanos_ = clock_->MonotonicNanos();
}

void DeviceTimeline::Finish() {
  if (busy_until_nanos_ > clock_->MonotonicNanos()) SleepToTheEnd();
  returned_nanos_ = clock_->MonotonicNanos();
  if (returned_nanos_ - busy_until_nanos_ > kBehindNanos) busy_until_nanos_ = returned_nanos_;
}

void PreciseSleepUntil(int64_t monotonic_nanos) {
  thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  static_cast<void>(precise);  // refused: sleeps end a little later
  const timespec end{.tv_sec = monotonic_nanos / 1'000'000'000,
                     .tv_nsec = monotonic_nanos % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

}  // namespace stagecoach
