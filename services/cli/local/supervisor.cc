#include "services/cli/local/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "services/cli/local/spawn.h"
#include "services/cli/output/text.h"
#include "services/common/flags/exit_code.h"

namespace stagecoach {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How often a port file that is still to come is looked for.
constexpr std::chrono::milliseconds kPortFilePoll(10);
// How often somebody in a hurry is asked for.
constexpr std::chrono::milliseconds kHurryPoll(50);

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

// The file appears complete or not at all: servers rename it into place.
std::optional<ProcessPorts> ReadPortFile(const std::string& path) {
  std::ifstream file(path);
  ProcessPorts ports;
  if (file >> ports.grpc >> ports.http) return ports;
  return std::nullopt;
}

// The last line that says something; only the end of the file is read.
std::string LastLine(const std::string& path) {
  constexpr std::streamoff kEndBytes = 2000;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(0, size - kEndBytes));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

// True once the process has ended; it stays to be reaped, so its pid is not given to another one.
bool HasEnded(pid_t pid, bool wait) {
  siginfo_t info{};
  while (waitid(P_PID, pid, &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG)) != 0) {
    CHECK(errno == EINTR) << "waitid for our own child " << pid << ": errno " << errno;
  }
  return info.si_pid != 0;
}

// Before the process is started again, which may forget it.
std::string HowItEnded(const ProcessSpec& spec, int wait_status) {
  const std::string death =
      WIFSIGNALED(wait_status) && spec.death ? spec.death(WTERMSIG(wait_status)) : "";
  return death.empty() ? absl::StrCat("with ", DescribeEnd(wait_status))
                       : absl::StrCat("by ", death);
}

}  // namespace

struct Supervisor::Child {
  ProcessSpec spec;
  // Guarded by the supervisor's mutex.
  pid_t pid = 0;  // 0: not running, or already reaped; never a pid that may be another process'
  ProcessPorts ports;
  int restarts = 0;
  bool ending = false;  // its end is wanted
  // The child's thread only.
  ProcessPorts last_ports;
  double backoff_seconds = 0;
  int failed_starts = 0;  // in a row
  Thread thread;
};

Supervisor::Supervisor(SupervisorOptions options) : options_(std::move(options)) {}

Supervisor::~Supervisor() { Stop(); }

void Supervisor::Start(ProcessSpec spec) {
  auto child = std::make_unique<Child>();
  child->spec = std::move(spec);
  child->backoff_seconds = options_.first_backoff_seconds;
  Child* const started = child.get();
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return;
  children_.push_back(std::move(child));
  started->thread = Thread(started->spec.name, [this, started] { Run(started); });
}

void Supervisor::Run(Child* child) {
  while (true) {
    const auto start = SteadyClock::now();
    if (!StartChild(child)) return;
    AwaitPorts(child);
    HasEnded(child->pid, /*wait=*/true);
    const int wait_status = Reap(child);
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kRefusedExitCode) {
      Fail(child, "cannot run here");  // and would say the same again
      return;
    }
    const std::chrono::duration<double> life = SteadyClock::now() - start;
    if (!WaitToRestart(child, HowItEnded(child->spec, wait_status), life.count())) return;
  }
}

bool Supervisor::StartChild(Child* child) {
  const std::vector<std::string> arguments = child->spec.arguments(child->last_ports);
  if (!child->spec.port_file.empty()) unlink(child->spec.port_file.c_str());
  absl::StatusOr<pid_t> pid = 0;
  {
    // Under the lock: Stop either sees the process or keeps it from starting.
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_ || child->ending) return false;
    pid = Spawn(arguments, child->spec.log_file, options_.environment);
    if (pid.ok()) {
      child->pid = *pid;
      child->ports = {};
      WriteStateLocked();
    }
  }
  if (!pid.ok()) {
    Fail(child, std::string(pid.status().message()));
    return false;
  }
  return true;
}

void Supervisor::AwaitPorts(Child* child) {
  if (child->spec.port_file.empty()) return;
  while (!HasEnded(child->pid, /*wait=*/false)) {
    const std::optional<ProcessPorts> ports = ReadPortFile(child->spec.port_file);
    std::unique_lock<std::mutex> lock(mutex_);
    if (ports.has_value()) {
      child->ports = child->last_ports = *ports;
      child->failed_starts = 0;
      WriteStateLocked();
      changed_.notify_all();
      return;
    }
    if (changed_.wait_for(lock, kPortFilePoll, [this] { return stopping_; })) return;
  }
}

int Supervisor::Reap(Child* child) {
  // Under the lock: nobody may send a signal to a pid that has been given back.
  std::lock_guard<std::mutex> lock(mutex_);
  int wait_status = 0;
  // Whatever it started and left running ends with it: the group is its own, and exists for sure
  // until it is reaped.
  kill(-child->pid, SIGKILL);
  CHECK_EQ(waitpid(child->pid, &wait_status, 0), child->pid) << child->spec.name;
  child->pid = 0;
  child->ports = {};
  WriteStateLocked();  // pids are used again: who reads the file must not signal a stranger
  changed_.notify_all();
  return wait_status;
}

bool Supervisor::WaitToRestart(Child* child, const std::string& how_it_ended, double life_seconds) {
  if (life_seconds >= options_.healthy_seconds) {
    child->backoff_seconds = options_.first_backoff_seconds;
  }
  bool give_up = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (stopping_ || child->ending) return false;
    give_up = child->restarts >= options_.max_restarts;
  }
  // Set back when the ports are told; a program without a port file counts as ready at once.
  if (!child->spec.port_file.empty()) ++child->failed_starts;
  give_up = give_up || child->failed_starts > options_.max_failed_starts;
  if (give_up) {
    Fail(child, absl::StrCat("ended ", how_it_ended, " after ", child->restarts, " restarts"));
    return false;
  }
  if (options_.on_note) {
    options_.on_note(
        absl::StrCat(child->spec.name, " ended ", how_it_ended, "; starting it again"));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (changed_.wait_for(lock, Seconds(child->backoff_seconds), [this] { return stopping_; })) {
    return false;
  }
  child->backoff_seconds = std::min(child->backoff_seconds * 2, options_.longest_backoff_seconds);
  ++child->restarts;
  return true;
}

void Supervisor::Fail(Child* child, const std::string& cause) {
  absl::Status status = absl::FailedPreconditionError(
      absl::StrCat(child->spec.name, ": ", cause, "; its log is ", child->spec.log_file, ": ",
                   LastLine(child->spec.log_file)));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok() || stopping_) return;
    failure_ = status;
  }
  changed_.notify_all();
  if (options_.on_failure) options_.on_failure(status);
}

absl::StatusOr<ProcessPorts> Supervisor::WaitForPorts(const std::string& name, double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto found = std::find_if(children_.begin(), children_.end(),
                                  [&](const auto& child) { return child->spec.name == name; });
  CHECK(found != children_.end()) << name << " was not started";
  const Child& child = **found;
  const auto answered = [&] { return child.ports.grpc != 0 || !failure_.ok() || stopping_; };
  const bool in_time = changed_.wait_for(lock, Seconds(seconds), answered);
  if (child.ports.grpc != 0) return child.ports;
  if (!failure_.ok()) return failure_;
  if (in_time) return absl::CancelledError("stopped");
  return absl::DeadlineExceededError(absl::StrCat(name, ": did not tell its ports within ", seconds,
                                                  " s; its log is ", child.spec.log_file));
}

std::vector<Supervisor::ProcessView> Supervisor::Processes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ProcessView> views;
  for (const auto& child : children_) {
    views.push_back({child->spec.name, child->pid, child->ports, child->restarts});
  }
  return views;
}

void Supervisor::SignalAll(int signal_number) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& child : children_) {
    if (child->pid == 0) continue;
    kill(child->pid, signal_number);
    // One that is stopped (SIGSTOP) could not act on it.
    kill(child->pid, SIGCONT);
  }
}

bool Supervisor::AwaitEnds(double seconds, const Hurry& hurry, const std::function<bool()>& ended) {
  const auto give_up = SteadyClock::now() + Seconds(seconds);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, kHurryPoll, ended)) {
    if ((hurry && hurry()) || SteadyClock::now() >= give_up) return false;
  }
  return true;
}

bool Supervisor::End(const std::string& name, double seconds, const Hurry& hurry) {
  Child* child = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(children_.begin(), children_.end(),
                                    [&](const auto& one) { return one->spec.name == name; });
    CHECK(found != children_.end()) << name << " was not started";
    child = found->get();
    child->ending = true;
    if (child->pid != 0) {
      kill(child->pid, SIGTERM);
      kill(child->pid, SIGCONT);  // as in SignalAll
    }
  }
  return AwaitEnds(seconds, hurry, [child] { return child->pid == 0; });
}

void Supervisor::Stop(const Hurry& hurry) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  SignalAll(SIGTERM);
  AwaitEnds(options_.grace_seconds, hurry, [this] {
    return std::all_of(children_.begin(), children_.end(),
                       [](const auto& child) { return child->pid == 0; });
  });
  SignalAll(SIGKILL);
  for (const auto& child : children_) child->thread.Join();
  std::lock_guard<std::mutex> lock(mutex_);
  WriteStateLocked();
}

void Supervisor::WriteStateLocked() {
  if (options_.state_file.empty()) return;
  const std::string temporary = absl::StrCat(options_.state_file, ".tmp");
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << "{\"processes\":[";
    const char* separator = "";
    for (const auto& child : children_) {
      const auto address = [&](int port) {
        return JsonText(port == 0 ? "" : absl::StrCat(options_.host, ":", port));
      };
      file << separator << "\n{\"name\":" << JsonText(child->spec.name) << ",\"pid\":" << child->pid
           << ",\"address\":" << address(child->ports.grpc)
           << ",\"http\":" << address(child->ports.http) << ",\"restarts\":" << child->restarts
           << "}";
      separator = ",";
    }
    file << "\n]}\n";
  }
  std::rename(temporary.c_str(), options_.state_file.c_str());
}

}  // namespace stagecoach
