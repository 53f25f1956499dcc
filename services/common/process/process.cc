#include "services/common/process/process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/numbers/machine_random.h"
#include "spdlog/spdlog.h"
#include "stage/link/grpc/malloc_settings.h"

namespace stagecoach {
namespace {

sigset_t TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// Shells and containers give 1,024 descriptors, which as many silent connections use up. The hard
// limit may be unlimited: 65,536 are plenty.
void RaiseFileLimit() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void PrepareProcess() {
  KeepReceiveBuffersMapped();
  const sigset_t set = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  RaiseFileLimit();
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void DieWithParent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1) _exit(kForcedExitCode);  // the parent died before the line above
}

int WaitForTermination() {
  const sigset_t set = TerminationSignals();
  int signal_number = 0;
  sigwait(&set, &signal_number);
  return signal_number;
}

int ExitCodeOfFailedStart(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ? kRefusedExitCode
                                                                          : kNotStartedExitCode;
}

std::string NewIncarnation() { return absl::StrFormat("%016x", MachineRandom()); }

absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port, int probes_port) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << grpc_port << " " << http_port;
    if (probes_port != 0) file << " " << probes_port;
    file << "\n";
    if (!file.flush()) {
      return absl::UnavailableError(absl::StrCat("cannot write --port-file ", path));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write --port-file ", path));
  }
  return absl::OkStatus();
}

ExitWatchdog::ExitWatchdog(double seconds)
    : thread_("exit-watchdog", [this, seconds] {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto limit = std::chrono::duration<double>(seconds);
        if (changed_.wait_for(lock, limit, [this] { return finished_; })) return;
        spdlog::critical("shutdown did not end within {} s: exiting anyway", seconds);
        _exit(kForcedExitCode);
      }) {}

ExitWatchdog::~ExitWatchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
  thread_.Join();
}

}  // namespace stagecoach
