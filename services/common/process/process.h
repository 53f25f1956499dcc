// What a daemon does to its own process: allocator settings, signals, parent death, forced exit.
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_PROCESS_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_PROCESS_H_

#include <condition_variable>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "base/thread.h"

namespace stagecoach {

// First thing in main: keeps large receive buffers from going back to the kernel after every
// message (without all three settings gRPC moves bytes at less than half the speed), blocks SIGTERM
// and SIGINT for every thread started later, ignores SIGPIPE.
void PrepareProcess();

// Ends this process when its parent dies (--die-with-parent).
void DieWithParent();

// Waits for SIGTERM or SIGINT and returns it. PrepareProcess has blocked both.
int WaitForTermination();

// Exit code of a daemon that did not start: kRefusedExitCode if its flags or this build cannot do
// what is asked, so that starting it again is of no use; 2 for what may pass (a port or a folder in
// use, a card that is away).
inline constexpr int kRefusedExitCode = 78;  // EX_CONFIG of sysexits.h
int ExitCodeOfFailedStart(const absl::Status& status);

// Random name of this process start, 16 hex digits.
std::string NewIncarnation();

// Writes the line "<gRPC port> <HTTP port>" atomically, for a parent that started us on port 0.
absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port);

// ExitWatchdog: a shutdown that hangs ends anyway. gRPC waits forever for one unfinished reactor.
class ExitWatchdog {
 public:
  explicit ExitWatchdog(double seconds);  // _exit(1) after that, unless destroyed before
  ~ExitWatchdog();

 private:
  std::mutex mutex_;  // guards finished_
  std::condition_variable changed_;
  bool finished_ = false;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_PROCESS_H_
