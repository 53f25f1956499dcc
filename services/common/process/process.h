// Settings of a daemon's own process: allocator, signals, parent death, forced exit.
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_PROCESS_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_PROCESS_H_

#include <condition_variable>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "base/threads/thread.h"
#include "services/common/flags/exit_code.h"

namespace stagecoach {

// Call it first in main:
//   - Large receive buffers do not go back to the kernel after every message. Without all three
//     settings gRPC moves bytes at less than half the speed.
//   - SIGTERM and SIGINT are blocked for every thread started later. SIGPIPE and SIGXFSZ are
//     ignored: a write beyond a limit of file size is an error, EFBIG, and does not end the
//     process.
//   - The soft limit of open files rises to 65,536, or to the hard limit if that is lower.
//   - Programs started from here get no more rights than this one.
void PrepareProcess();

// Ends this process when its parent dies (--die-with-parent).
void DieWithParent();

// Waits for SIGTERM or SIGINT and returns it. PrepareProcess has blocked both.
int WaitForTermination();

// Exit code of a daemon that did not start: kRefusedExitCode or kNotStartedExitCode.
int ExitCodeOfFailedStart(const absl::Status& status);

// Random name of this process start, 16 hex digits.
std::string NewIncarnation();

// Writes the line "<gRPC port> <HTTP port>" atomically, for a parent that started us on port 0. A
// port of probes (not 0) is the third number.
absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port,
                           int probes_port = 0);

// ExitWatchdog: a shutdown that hangs ends anyway. gRPC waits forever for one unfinished reactor.
class ExitWatchdog {
 public:
  explicit ExitWatchdog(double seconds);  // _exit(1) after that, unless destroyed first
  ~ExitWatchdog();

 private:
  std::mutex mutex_;  // guards finished_
  std::condition_variable changed_;
  bool finished_ = false;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_PROCESS_H_
