// Supervisor: child processes of `stagecoach local`. It restarts a child that dies, as compose or
// Kubernetes would, and ends all children when it ends.
// Ownership: owns the processes. After Stop (and the destructor) none is left, not even as a
//            zombie. Processes that they started in their process group are gone too.
// Threads:   thread-safe. One thread a child starts it, waits for its end and starts it again. The
//            thread lives as long as the child: the kernel ties --die-with-parent to the parent's
//            thread.
// Errors:    the supervision ends if a program cannot be started, or if it refuses its flags or its
//            machine (kRefusedExitCode, exit_code.h). It also ends if a program dies more than
//            `max_restarts` times. `on_failure` is then called once, on a child's thread. Its
//            FAILED_PRECONDITION names process, cause and log.
// State:     `state_file` says at every moment what runs, rewritten (atomically) at every change:
//            {"processes":[{"name":"stage-0","pid":123,"address":"127.0.0.1:4000",
//             "http":"127.0.0.1:4001","restarts":0}]}
#ifndef STAGECOACH_SERVICES_CLI_LOCAL_SUPERVISOR_H_
#define STAGECOACH_SERVICES_CLI_LOCAL_SUPERVISOR_H_

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/thread.h"

namespace stagecoach {

struct ProcessPorts {
  int grpc = 0, http = 0;  // 0: not known yet
  friend bool operator==(const ProcessPorts&, const ProcessPorts&) = default;
};

struct ProcessSpec {
  std::string name;  // unique
  // Called before every start, with the ports of the start before (zeros at first). So a server
  // whose address others know asks for the same port again.
  std::function<std::vector<std::string>(const ProcessPorts& last)> arguments;
  std::string log_file;  // standard output and error are appended here
  // Text for an end by this signal, shown instead of the signal's number; "": no text. May be
  // empty.
  std::function<std::string(int signal_number)> death;
  std::string
      port_file;  // the program writes "<gRPC port> <HTTP port>" into it; empty: it has none
};

struct SupervisorOptions {
  std::string state_file;  // empty: none
  std::string host = "127.0.0.1";
  int max_restarts = 20;               // of one process
  int max_failed_starts = 5;           // in a row that end before the process tells its ports
  double first_backoff_seconds = 0.1;  // doubles with every quick death
  double longest_backoff_seconds = 2;
  double healthy_seconds = 10;           // a life this long resets the back-off
  double grace_seconds = 10;             // from SIGTERM to SIGKILL in Stop
  std::vector<std::string> environment;  // "NAME=value" added where NAME is not set already
  std::function<void(const absl::Status&)> on_failure;
  std::function<void(const std::string&)> on_note;  // "stage-1 ended by signal 9; started again"
};

class Supervisor {
 public:
  struct ProcessView {
    std::string name;
    pid_t pid = 0;  // 0: not running at the moment
    ProcessPorts ports;
    int restarts = 0;
  };

  explicit Supervisor(SupervisorOptions options);
  ~Supervisor();  // Stop

  void Start(ProcessSpec spec);
  // Waits until the process has told its ports. Else DEADLINE_EXCEEDED, or why it does not run.
  absl::StatusOr<ProcessPorts> WaitForPorts(const std::string& name, double seconds);
  std::vector<ProcessView> Processes() const;  // in the order of Start

  // Called repeatedly while something ends in order; true: end it now.
  using Hurry = std::function<bool()>;
  // SIGTERM to one process, which is not started again; waits for its end. False: it was hurried,
  // or did not end within `seconds`.
  bool End(const std::string& name, double seconds, const Hurry& hurry);
  // SIGTERM to all, SIGKILL to those that are left after the grace period; waits for every end.
  void Stop(const Hurry& hurry = nullptr);

 private:
  struct Child;

  void Run(Child* child);
  bool StartChild(Child* child);
  void AwaitPorts(Child* child);
  int Reap(Child* child);  // the wait status
  bool WaitToRestart(Child* child, const std::string& how_it_ended, double life_seconds);
  void Fail(Child* child, const std::string& cause);
  void WriteStateLocked();
  void SignalAll(int signal_number);
  bool AwaitEnds(double seconds, const Hurry& hurry, const std::function<bool()>& ended);

  const SupervisorOptions options_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Child>> children_;
  bool stopping_ = false;
  absl::Status failure_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_LOCAL_SUPERVISOR_H_
