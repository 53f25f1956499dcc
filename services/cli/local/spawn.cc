#include "services/cli/local/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/files/file_handle.h"

extern char** environ;

namespace stagecoach {
namespace {

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& string : *strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> MergedEnvironment(const std::vector<std::string>& additions) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) merged.emplace_back(*entry);
  for (const std::string& addition : additions) {
    if (getenv(addition.substr(0, addition.find('=')).c_str()) == nullptr)
      merged.push_back(addition);
  }
  return merged;
}

class SpawnAttributes {
 public:
  SpawnAttributes() {
    CHECK_EQ(posix_spawnattr_init(&value_), 0);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) sigaddset(&defaults, number);
    posix_spawnattr_setsigmask(&value_, &none);
    posix_spawnattr_setsigdefault(&value_, &defaults);
    posix_spawnattr_setpgroup(&value_, 0);
    posix_spawnattr_setflags(
        &value_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&value_); }
  const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_;
};

class SpawnFiles {
 public:
  explicit SpawnFiles(const std::string& log_file) {
    CHECK_EQ(posix_spawn_file_actions_init(&value_), 0);
    posix_spawn_file_actions_addopen(&value_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&value_, STDOUT_FILENO, log_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&value_, STDOUT_FILENO, STDERR_FILENO);
  }
  SpawnFiles(const FileHandle& output, bool quiet) {
    CHECK_EQ(posix_spawn_file_actions_init(&value_), 0);
    posix_spawn_file_actions_addopen(&value_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&value_, output.get(), STDOUT_FILENO);
    if (quiet) {
      posix_spawn_file_actions_addopen(&value_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
  }
  ~SpawnFiles() { posix_spawn_file_actions_destroy(&value_); }
  const posix_spawn_file_actions_t* get() const { return &value_; }

 private:
  posix_spawn_file_actions_t value_;
};

// A process until it is reaped. Its callback may run later than its owner lives.
class KillableProcess {
 public:
  explicit KillableProcess(pid_t pid) : pid_(pid) {}
  void Kill() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (pid_ > 0) kill(-pid_, SIGKILL);  // the group is its own
  }
  int Wait() {
    siginfo_t info = {};
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0) {
      CHECK_EQ(errno, EINTR) << "waitid for our own child " << pid_;
    }
    std::lock_guard<std::mutex> lock(mutex_);  // no signal to a pid that was given back
    int wait_status = 0;
    CHECK_EQ(waitpid(pid_, &wait_status, 0), pid_);
    pid_ = 0;
    return wait_status;
  }

 private:
  std::mutex mutex_;
  pid_t pid_;
};

std::string ReadToEnd(const FileHandle& pipe) {
  constexpr size_t kMost = size_t{64} << 10;
  std::string output;
  char piece[4096];
  while (true) {
    const ssize_t got = read(pipe.get(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return output;
    output.append(piece, std::min(static_cast<size_t>(got), kMost - output.size()));
  }
}

}  // namespace

absl::StatusOr<ProgramAnswer> RunProgram(const std::vector<std::string>& arguments, bool quiet,
                                         StopSignal* stop) {
  CHECK(!arguments.empty()) << "a program to start";
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "a pipe to a program");
  const FileHandle from(ends[0]);
  std::vector<std::string> argument_copies = arguments;
  pid_t pid = 0;
  {
    const FileHandle into(ends[1]);  // closed here, so that the end of its output is seen
    const SpawnAttributes attributes;
    const SpawnFiles files(into, quiet);
    const int error = posix_spawn(&pid, arguments[0].c_str(), files.get(), attributes.get(),
                                  Pointers(&argument_copies).data(), environ);
    if (error != 0) {
      return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", arguments[0]));
    }
  }
  const auto process = std::make_shared<KillableProcess>(pid);
  const StopSignal::Registration kill_on_stop(stop, [process] { process->Kill(); });
  std::string output = ReadToEnd(from);
  const int wait_status = process->Wait();
  if (stop->requested()) return stop->reason();
  return ProgramAnswer{wait_status, std::move(output)};
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments, const std::string& log_file,
                            const std::vector<std::string>& environment) {
  CHECK(!arguments.empty()) << "a program to start";
  std::vector<std::string> argument_copies = arguments;
  std::vector<std::string> merged = MergedEnvironment(environment);
  const SpawnAttributes attributes;
  const SpawnFiles files(log_file);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments[0].c_str(), files.get(), attributes.get(),
                                Pointers(&argument_copies).data(), Pointers(&merged).data());
  if (error == 0) return pid;
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot start ", arguments[0], " with its output in ", log_file));
}

std::string DescribeEnd(int wait_status) {
  if (WIFEXITED(wait_status)) return absl::StrCat("exit code ", WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  return absl::StrCat("signal ", number, " (", strsignal(number), ")");
}

std::string ProgramFolder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : program.parent_path().string();
}

}  // namespace stagecoach
