// Children are restarted, given up, and ended; nothing is left behind.
#include "services/cli/local/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/bounded_queue.h"
#include "nlohmann/json.hpp"
#include "services/cli/client/stop_signal.h"
#include "services/cli/local/local_cluster.h"
#include "services/cli/local/spawn.h"
#include "services/common/process/process.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kDeadline(30);

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    options_.state_file = folder_.File("processes.json");
    options_.first_backoff_seconds = 0.001;
    options_.on_failure = [this](const absl::Status& status) {
      EXPECT_TRUE(failures_.TryPush(absl::Status(status)));
    };
    options_.on_note = [this](const std::string& note) { (void)notes_.TryPush(std::string(note)); };
  }
  ~SupervisorTest() override {
    // Not one child of this process is left, running or not.
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  // A shell that does what `first` says, tells its ports, and then does what `script` says.
  ProcessSpec Shell(const std::string& name, const std::string& script,
                    const std::string& first = ":") {
    ProcessSpec spec;
    spec.name = name;
    spec.log_file = folder_.File(name + ".log");
    spec.port_file = folder_.File(name + ".ports");
    const std::string told =
        absl::StrCat(first, "; echo '4000 4001' > ", spec.port_file, ".tmp; mv ", spec.port_file,
                     ".tmp ", spec.port_file, "; ", script);
    spec.arguments = [told](const ProcessPorts&) {
      return std::vector<std::string>{"/bin/sh", "-c", told};
    };
    return spec;
  }

  std::string WaitForNote() {
    return notes_.PopWithin(kDeadline).value_or("no note within the deadline");
  }

  nlohmann::json State() {
    return nlohmann::json::parse(FileText(options_.state_file))["processes"];
  }

  std::string ReadLog(const std::string& name) { return FileText(folder_.File(name + ".log")); }

  const TemporaryFolder folder_;
  SupervisorOptions options_;
  BoundedQueue<absl::Status> failures_{16};
  BoundedQueue<std::string> notes_{64};
};

TEST_F(SupervisorTest, RestartsAProcessThatWasKilledAndSaysSoInTheStateFile) {
  Supervisor supervisor(options_);
  supervisor.Start(Shell("stage-0", "exec sleep 1000"));
  const absl::StatusOr<ProcessPorts> ports = supervisor.WaitForPorts("stage-0", 30);
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_EQ(*ports, (ProcessPorts{4000, 4001}));
  const nlohmann::json before = State()[0];
  EXPECT_EQ(before["name"], "stage-0");
  EXPECT_EQ(before["address"], "127.0.0.1:4000");
  EXPECT_EQ(before["http"], "127.0.0.1:4001");
  EXPECT_EQ(before["restarts"], 0);
  const pid_t pid = before["pid"];

  ASSERT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_THAT(WaitForNote(), HasSubstr("stage-0 ended with signal 9 (Killed)"));
  // It may not have noticed the new port file yet: only that wait has an event.
  while (supervisor.Processes()[0].restarts == 0 || !supervisor.WaitForPorts("stage-0", 30).ok()) {
    ASSERT_FALSE(failures_.TryPop().has_value());
  }
  const nlohmann::json after = State()[0];
  EXPECT_EQ(after["restarts"], 1);
  EXPECT_NE(after["pid"], pid);
  supervisor.Stop();
  EXPECT_EQ(State()[0]["pid"], 0);
}

TEST_F(SupervisorTest, SaysWhatIsKnownOfASignal) {
  Supervisor supervisor(options_);
  ProcessSpec spec = Shell("stage-0", "kill -SEGV $$");
  spec.death = [](int signal_number) {
    return signal_number == SIGSEGV ? "SIGSEGV at step 12, micro-batch 3, backward" : "";
  };
  supervisor.Start(spec);
  EXPECT_THAT(WaitForNote(), HasSubstr("stage-0 ended by SIGSEGV at step 12, micro-batch 3, "
                                       "backward; starting it again"));
}

TEST_F(SupervisorTest, GivesUpOnAProcessThatDiesAgainAndAgain) {
  options_.max_restarts = 3;
  Supervisor supervisor(options_);
  supervisor.Start(Shell("stage-0", "echo reason on stderr >&2; exit 3"));
  const std::optional<absl::Status> failure = failures_.PopWithin(kDeadline);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(failure->message()),
              HasSubstr("stage-0: ended with exit code 3 after 3 restarts; its log is"));
  EXPECT_EQ(ReadLog("stage-0"),
            "reason on stderr\nreason on stderr\nreason on stderr\n"
            "reason on stderr\n");
}

// A script read the pid of a stage that had been given up, and signalled whoever had it by then.
TEST_F(SupervisorTest, APidThatWasGivenBackIsNotInTheStateFile) {
  options_.max_restarts = 0;
  Supervisor supervisor(options_);
  supervisor.Start(Shell("stage-0", "exec sleep 1000"));
  ASSERT_TRUE(supervisor.WaitForPorts("stage-0", 30).ok());
  const pid_t pid = State()[0]["pid"];
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  ASSERT_TRUE(failures_.PopWithin(kDeadline).has_value());
  EXPECT_EQ(State()[0]["pid"], 0);
  EXPECT_EQ(State()[0]["address"], "");
}

TEST_F(SupervisorTest, GivesUpEarlyOnAProgramThatNeverGetsReadyAndQuotesItsLog) {
  options_.max_failed_starts = 2;
  Supervisor supervisor(options_);
  ProcessSpec spec = Shell("coordinator", "");
  spec.arguments = [](const ProcessPorts&) {
    return std::vector<std::string>{"/bin/sh", "-c",
                                    "echo starting; echo folder is locked; exit 1"};
  };
  supervisor.Start(std::move(spec));
  const absl::Status status = supervisor.WaitForPorts("coordinator", 30).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("after 2 restarts"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("coordinator.log: folder is locked"));
}

// Symptom: `local --device cuda` of a build without CUDA started each stage six times before it
// gave the reason, which was there the first time. Cause: every exit counted as one that may pass.
TEST_F(SupervisorTest, AProgramThatRefusesToRunHereIsNotStartedAgain) {
  Supervisor supervisor(options_);
  ProcessSpec spec = Shell("stage-0", "");
  const std::string script =
      absl::StrCat("echo no CUDA in this build >&2; exit ", kRefusedExitCode);
  spec.arguments = [script](const ProcessPorts&) {
    return std::vector<std::string>{"/bin/sh", "-c", script};
  };
  supervisor.Start(std::move(spec));
  const std::optional<absl::Status> failure = failures_.PopWithin(kDeadline);
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(std::string(failure->message()), HasSubstr("stage-0: cannot run here; its log is"));
  EXPECT_THAT(std::string(failure->message()), HasSubstr("stage-0.log: no CUDA in this build"));
  supervisor.Stop();
  EXPECT_EQ(ReadLog("stage-0"), "no CUDA in this build\n") << "once";
  EXPECT_FALSE(notes_.TryPop().has_value()) << "nothing about starting it again";
}

TEST(ExitCodeOfFailedStart, OnlyWhatCannotPassIsRefusedForGood) {
  EXPECT_EQ(ExitCodeOfFailedStart(absl::UnimplementedError("built without CUDA")),
            kRefusedExitCode);
  EXPECT_EQ(ExitCodeOfFailedStart(absl::InvalidArgumentError("--device=tpu")), kRefusedExitCode);
  EXPECT_EQ(ExitCodeOfFailedStart(absl::UnavailableError("the port is taken")), 2);
  EXPECT_EQ(ExitCodeOfFailedStart(absl::FailedPreconditionError("the folder is locked")), 2);
}

TEST_F(SupervisorTest, AProgramThatIsNotThereEndsTheWaitForItsPorts) {
  Supervisor supervisor(options_);
  ProcessSpec spec = Shell("coordinator", "");
  spec.arguments = [](const ProcessPorts&) { return std::vector<std::string>{"/no/such/program"}; };
  supervisor.Start(std::move(spec));
  const absl::Status status = supervisor.WaitForPorts("coordinator", 30).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot start /no/such/program"));
}

TEST_F(SupervisorTest, AProcessThatNeverTellsItsPortsIsNamed) {
  Supervisor supervisor(options_);
  ProcessSpec spec = Shell("mute", "");
  spec.arguments = [](const ProcessPorts&) {
    return std::vector<std::string>{"/bin/sh", "-c", "exec sleep 1000"};
  };
  supervisor.Start(std::move(spec));
  EXPECT_THAT(
      supervisor.WaitForPorts("mute", 0.05).status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("mute: did not tell its ports")));
}

TEST_F(SupervisorTest, ARestartIsToldThePortsOfTheLastLife) {
  Supervisor supervisor(options_);
  ProcessSpec spec = Shell("coordinator", "exec sleep 1000");
  BoundedQueue<ProcessPorts> seen(8);
  spec.arguments = [&seen, inner = spec.arguments](const ProcessPorts& last) {
    EXPECT_TRUE(seen.TryPush(ProcessPorts(last)));
    return inner(last);
  };
  supervisor.Start(std::move(spec));
  ASSERT_TRUE(supervisor.WaitForPorts("coordinator", 30).ok());
  kill(supervisor.Processes()[0].pid, SIGKILL);
  EXPECT_EQ(seen.PopWithin(kDeadline), (ProcessPorts{0, 0}));
  EXPECT_EQ(seen.PopWithin(kDeadline), (ProcessPorts{4000, 4001}));
  supervisor.Stop();
}

TEST_F(SupervisorTest, StopEndsAlsoWhatIgnoresSigtermAndWhatIsStopped) {
  options_.grace_seconds = 0.2;
  Supervisor supervisor(options_);
  supervisor.Start(Shell("deaf", "while :; do sleep 1000; done", "trap '' TERM"));
  supervisor.Start(Shell("stopped", "exec sleep 1000"));
  for (const char* name : {"deaf", "stopped"}) {
    ASSERT_TRUE(supervisor.WaitForPorts(name, 30).ok());
  }
  std::vector<pid_t> pids;
  for (const auto& process : supervisor.Processes()) pids.push_back(process.pid);
  ASSERT_EQ(kill(pids[1], SIGSTOP), 0);
  supervisor.Stop();
  for (const pid_t pid : pids) {
    EXPECT_EQ(kill(pid, 0), -1) << pid;
    EXPECT_EQ(errno, ESRCH);
  }
}

// Symptom: the test above left a `sleep 1000`, which held a lock of the shell that ran the tests
// for a quarter of an hour. Cause: SIGKILL went to the child alone, and what it had started went
// on.
TEST_F(SupervisorTest, WhatAChildStartedEndsWithIt) {
  // An orphan comes back to this process, so that its end can be waited for.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  options_.grace_seconds = 0.2;
  Supervisor supervisor(options_);
  const std::string pid_file = folder_.File("helper.pid");
  ProcessSpec spec = Shell("deaf", "");
  spec.arguments = [inner = Shell("deaf", "wait").arguments, pid_file](const ProcessPorts& last) {
    std::vector<std::string> arguments = inner(last);
    arguments[2] =
        absl::StrCat("trap '' TERM; sleep 1000 & echo $! > ", pid_file, "; ", arguments[2]);
    return arguments;
  };
  supervisor.Start(std::move(spec));
  ASSERT_TRUE(supervisor.WaitForPorts("deaf", 30).ok());
  pid_t helper = 0;
  std::ifstream(pid_file) >> helper;
  ASSERT_GT(helper, 0);
  const int end = static_cast<int>(syscall(SYS_pidfd_open, helper, 0));
  ASSERT_GE(end, 0);
  supervisor.Stop();
  pollfd ended{.fd = end, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&ended, 1, std::chrono::milliseconds(kDeadline).count()), 1) << "still running";
  close(end);
  if (ended.revents == 0) kill(helper, SIGKILL);
  EXPECT_EQ(waitpid(helper, nullptr, 0), helper);
  prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

TEST_F(SupervisorTest, ChildrenStartWithNothingBlockedAndOutsideOfOurProcessGroup) {
  BlockTerminationSignals();
  options_.max_restarts = 0;
  options_.environment = {"STAGECOACH_TEST_ADDED=yes", "PATH=/replaced"};
  Supervisor supervisor(options_);
  supervisor.Start(
      Shell("child",
            "grep SigBlk /proc/self/status; echo added=$STAGECOACH_TEST_ADDED; "
            "echo group=$(ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat)"));
  ASSERT_TRUE(failures_.PopWithin(kDeadline).has_value());
  const std::string log = ReadLog("child");
  EXPECT_THAT(log, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(log, HasSubstr("added=yes"));
  EXPECT_THAT(log, testing::Not(HasSubstr(absl::StrCat("group=", getpgrp(), "\n"))));
}

TEST_F(SupervisorTest, OneProcessEndsInOrderAndIsNotStartedAgain) {
  Supervisor supervisor(options_);
  supervisor.Start(Shell("coordinator", "while :; do sleep 0.01; done", "trap 'exit 0' TERM"));
  supervisor.Start(Shell("stage-0", "exec sleep 1000"));
  ASSERT_TRUE(supervisor.WaitForPorts("coordinator", 30).ok());
  ASSERT_TRUE(supervisor.WaitForPorts("stage-0", 30).ok());
  EXPECT_TRUE(supervisor.End("coordinator", 30, [] { return false; }));
  EXPECT_EQ(supervisor.Processes()[0].pid, 0);
  EXPECT_NE(supervisor.Processes()[1].pid, 0) << "the others go on";
  supervisor.Stop();
  EXPECT_EQ(supervisor.Processes()[0].restarts, 0);
  EXPECT_FALSE(notes_.TryPop().has_value()) << "an end that was wanted is no news";
}

// Symptom: with a coordinator that was stopped (SIGSTOP), `local` did not end on SIGTERM within
// fourteen minutes.
TEST_F(SupervisorTest, OneThatIsStoppedEndsInOrderToo) {
  Supervisor supervisor(options_);
  supervisor.Start(Shell("coordinator", "while :; do sleep 0.01; done", "trap 'exit 0' TERM"));
  ASSERT_TRUE(supervisor.WaitForPorts("coordinator", 30).ok());
  ASSERT_EQ(kill(supervisor.Processes()[0].pid, SIGSTOP), 0);
  EXPECT_TRUE(supervisor.End("coordinator", 30, [] { return false; }));
  EXPECT_EQ(supervisor.Processes()[0].pid, 0);
}

TEST_F(SupervisorTest, WhoIsInAHurryDoesNotWaitForAnEndInOrder) {
  options_.grace_seconds = 1e6;
  Supervisor supervisor(options_);
  supervisor.Start(Shell("coordinator", "exec sleep 1000", "trap '' TERM"));
  ASSERT_TRUE(supervisor.WaitForPorts("coordinator", 30).ok());
  int asked = 0;
  const auto hurry = [&asked] { return ++asked > 1; };
  EXPECT_FALSE(supervisor.End("coordinator", 1e6, hurry));
  supervisor.Stop(hurry);
  EXPECT_EQ(supervisor.Processes()[0].pid, 0);
}

// The programs are scripts that tell ports and wait, as the servers do.
TEST_F(SupervisorTest, ALocalClusterHasItsStateFolderForItself) {
  LocalClusterOptions options;
  options.program_folder = options.state_folder = folder_.path();
  for (const char* program : {"stagecoach-coordinator", "stagecoach-stage"}) {
    std::filesystem::permissions(
        folder_.Write(program,
                      "#!/bin/sh\necho 4000 4001 > $6.tmp; mv $6.tmp $6; exec sleep 1000\n"),
        std::filesystem::perms::owner_all);
  }
  options.holder = "stagecoach ui";
  auto first = LocalCluster::Start(options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->address(), "127.0.0.1:4000");
  (*first)->StartStages(2, 1, {});
  // Symptom: `resume` was told of a `stagecoach local` where somebody looked at the page by `ui`.
  options.holder = "stagecoach resume";
  EXPECT_THAT(LocalCluster::Start(options).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(absl::StrCat("/local.lock is held by `stagecoach ui`, process ",
                                              getpid(), ";"))));
  first->reset();
  EXPECT_EQ(State().size(), 3u);
  EXPECT_EQ(std::filesystem::file_size(folder_.File("local.lock")), 0u) << "of nobody's name";
  EXPECT_TRUE(LocalCluster::Start(options).ok()) << "free again";
}

TEST(LocalCluster, DevicesAreInTheOrderOfThePipelineAndRepeat) {
  const std::vector<std::string> devices = {"cuda:0", "cuda:1", "cpu"};
  EXPECT_EQ(DeviceOfStage(0, 4, devices), "cuda:0");
  EXPECT_EQ(DeviceOfStage(2, 4, devices), "cpu");
  EXPECT_EQ(DeviceOfStage(3, 4, devices), "cuda:0");
  EXPECT_EQ(DeviceOfStage(11, 12, {"cpu"}), "cpu");
  // By name: 0, 1, 10, 11, 2, 3, ...
  EXPECT_EQ(DeviceOfStage(10, 12, devices), "cpu");
  EXPECT_EQ(DeviceOfStage(2, 12, devices), "cuda:1");
}

TEST(LocalCluster, OnlyStagesThatComputeOnCoresShareThem) {
  const int cores = DefaultThreadsPerStage(1);
  EXPECT_EQ(DefaultThreadsPerStage(2, {"cuda:0", "cpu"}), cores);
  EXPECT_EQ(DefaultThreadsPerStage(2, {"cpu"}), std::max(1, cores / 2));
  EXPECT_EQ(DefaultThreadsPerStage(4, {"cuda"}), cores) << "they need none, but one at least";
}

TEST(LocalCluster, ThreadsAreDividedAmongTheStages) {
  EXPECT_GE(DefaultThreadsPerStage(1), 1);
  EXPECT_EQ(DefaultThreadsPerStage(100000), 1);
}

TEST(StopSignal, TheFirstReasonStaysAndEveryoneIsTold) {
  StopSignal stop;
  int calls = 0;
  const StopSignal::Registration early(&stop, [&calls] { ++calls; });
  {
    const StopSignal::Registration gone(&stop, [&calls] { calls += 100; });
  }
  EXPECT_FALSE(stop.WaitFor(std::chrono::nanoseconds(1)));
  stop.Request(absl::CancelledError("interrupted"));
  stop.Request(absl::InternalError("later"));
  const StopSignal::Registration late(&stop, [&calls] { ++calls; });
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(stop.WaitFor(std::chrono::hours(1)));
  EXPECT_EQ(stop.reason().message(), "interrupted");
}

}  // namespace
}  // namespace stagecoach
