// StopSignal: tells all waiting code that the user wants to end (Ctrl-C, SIGTERM, a terminal that
// closes), or that going on is pointless. The first reason stays. A second request ends also work
// that would still end in order.
// Ownership: outlives all its users.
// Threads:   thread-safe. Callbacks run on the thread that calls Request, without a lock held.
#ifndef STAGECOACH_SERVICES_CLI_CLIENT_STOP_SIGNAL_H_
#define STAGECOACH_SERVICES_CLI_CLIENT_STOP_SIGNAL_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "absl/status/status.h"

namespace stagecoach {

class StopSignal {
 public:
  void Request(absl::Status reason);
  // Ends also work that Request lets end in order.
  void RequestAtOnce(absl::Status reason);
  bool requested() const;
  bool at_once() const;
  absl::Status reason() const;  // ok until a stop is requested

  // True if the stop was requested before the time was over.
  bool WaitFor(std::chrono::nanoseconds time) const;

  // While this object lives, `callback` is called once when (or because) a stop is requested. A
  // running call may outlive the object, so the callback owns all that it touches.
  class Registration {
   public:
    Registration(StopSignal* signal, std::function<void()> callback);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    StopSignal* const signal_;
    uint64_t id_ = 0;
  };

 private:
  mutable std::mutex mutex_;  // guards all below
  mutable std::condition_variable changed_;
  absl::Status reason_;
  bool at_once_ = false;
  std::map<uint64_t, std::function<void()>> callbacks_;
  uint64_t next_id_ = 1;
};

// Turns SIGINT, SIGTERM and SIGHUP into StopSignal::Request(CANCELLED "interrupted"), and, if a
// stop was requested already, the first two into RequestAtOnce. All must be blocked in every thread
// (BlockTerminationSignals, first thing in main). A process that was started with SIGHUP ignored
// (nohup) goes on ignoring it.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(StopSignal* stop);
  ~InterruptWatcher();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void BlockTerminationSignals();

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_CLIENT_STOP_SIGNAL_H_
