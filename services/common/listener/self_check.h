// SelfCheck: whether the process still answers on its own gRPC port. It dials itself every few
// seconds, on a thread of its own. After failures_until_unwell failures in a row the process is not
// well, after failures_until_dead it is dead. SelfCheck then calls on_dead once.
// Ownership: owns its thread; borrows the clock.
// Threads:   Start and Stop: one thread. well() and Look(): any, Look() one at a time.
// Units:     seconds.
// Errors:    the log has the reason why the dial failed, when it is not well and when it is dead.
#ifndef STAGECOACH_SERVICES_COMMON_LISTENER_SELF_CHECK_H_
#define STAGECOACH_SERVICES_COMMON_LISTENER_SELF_CHECK_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "absl/status/status.h"
#include "base/threads/clock.h"
#include "base/threads/thread.h"

namespace stagecoach {

class SelfCheck {
 public:
  struct Options {
    std::function<absl::Status()> dial;  // has a deadline of its own
    // Called after a failed dial: true if the port is only busy with others, so that the failure
    // does not count. Empty: it always counts.
    std::function<bool()> busy = {};
    std::function<void()> on_dead;  // on Look()'s thread; must not block; may be empty
    double seconds_between = 5;
    int failures_until_unwell = 3;
    int failures_until_dead = 6;
    const Clock* clock = SystemClock::Get();
  };
  explicit SelfCheck(Options options) : options_(std::move(options)) {}
  ~SelfCheck() { Stop(); }

  void Start();
  // Waits for the current dial. well() keeps its last answer.
  void Stop();
  bool well() const { return well_; }
  void Look();  // one dial; Start's thread does it

 private:
  void Run();

  const Options options_;
  std::atomic<bool> well_{true};
  int failures_ = 0;                  // in a row; of Look()
  double first_failure_seconds_ = 0;  // of these
  std::mutex mutex_;                  // guards ending_
  std::condition_variable changed_;
  bool ending_ = false;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_LISTENER_SELF_CHECK_H_
