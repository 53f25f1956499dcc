#include "services/cli/client/stop_signal.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/threads/thread.h"

namespace stagecoach {
namespace {

// A signal that is blocked comes although it is ignored, and `nohup` means what it says.
bool IsIgnored(int signal_number) {
  struct sigaction action;
  CHECK_EQ(sigaction(signal_number, nullptr, &action), 0);
  return action.sa_handler == SIG_IGN;
}

sigset_t TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void StopSignal::Request(absl::Status reason) {
  CHECK(!reason.ok()) << "a stop has a reason";
  std::vector<std::function<void()>> callbacks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!reason_.ok()) return;
    reason_ = std::move(reason);
    for (auto& [id, callback] : callbacks_) callbacks.push_back(std::move(callback));
    callbacks_.clear();
  }
  changed_.notify_all();
  for (const std::function<void()>& callback : callbacks) callback();
}

void StopSignal::RequestAtOnce(absl::Status reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    at_once_ = true;
  }
  Request(std::move(reason));
}

bool StopSignal::at_once() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return at_once_;
}

bool StopSignal::requested() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !reason_.ok();
}

absl::Status StopSignal::reason() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

bool StopSignal::WaitFor(std::chrono::nanoseconds time) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return !reason_.ok(); });
}

StopSignal::Registration::Registration(StopSignal* signal, std::function<void()> callback)
    : signal_(signal) {
  {
    std::lock_guard<std::mutex> lock(signal_->mutex_);
    if (signal_->reason_.ok()) {
      id_ = signal_->next_id_++;
      signal_->callbacks_[id_] = std::move(callback);
      return;
    }
  }
  callback();  // too late to wait for it
}

StopSignal::Registration::~Registration() {
  std::lock_guard<std::mutex> lock(signal_->mutex_);
  signal_->callbacks_.erase(id_);
}

struct InterruptWatcher::State {
  int signals = -1, wake = -1;
  Thread thread;
};

InterruptWatcher::InterruptWatcher(StopSignal* stop) : state_(std::make_unique<State>()) {
  const sigset_t set = TerminationSignals();
  state_->signals = signalfd(-1, &set, SFD_CLOEXEC);
  state_->wake = eventfd(0, EFD_CLOEXEC);
  CHECK(state_->signals >= 0 && state_->wake >= 0) << "no file descriptors for signals";
  state_->thread = Thread("interrupts", [state = state_.get(), stop] {
    while (true) {
      pollfd events[2] = {{state->signals, POLLIN, 0}, {state->wake, POLLIN, 0}};
      if (poll(events, 2, -1) < 0) continue;
      if (events[1].revents != 0) return;
      signalfd_siginfo info;
      if (read(state->signals, &info, sizeof(info)) != sizeof(info)) continue;
      const absl::Status reason = absl::CancelledError("interrupted");
      // A terminal that closes says so more than once: by its shell and by the kernel.
      const bool insists = stop->requested() && info.ssi_signo != SIGHUP;
      insists ? stop->RequestAtOnce(reason) : stop->Request(reason);
    }
  });
}

InterruptWatcher::~InterruptWatcher() {
  const uint64_t one = 1;
  CHECK_EQ(write(state_->wake, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  state_->thread.Join();
  close(state_->signals);
  close(state_->wake);
}

void BlockTerminationSignals() {
  const sigset_t set = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace stagecoach
