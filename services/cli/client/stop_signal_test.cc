// Symptom: closing a terminal ended `stagecoach local` at once, and lost the steps since its
// checkpoint.
#include "services/cli/client/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <initializer_list>
#include <thread>

namespace stagecoach {
namespace {

constexpr int kAsked = 10, kAtOnce = 11, kNeither = 12;

void AwaitTaken(int signal_number) {
  sigset_t pending;
  do {
    std::this_thread::yield();
    sigpending(&pending);
  } while (sigismember(&pending, signal_number) == 1);
}

// A process that gets these signals one after the other, and ends with what it made of them.
[[noreturn]] void GetSignals(std::initializer_list<int> numbers, void (*hangup)(int)) {
  signal(SIGHUP, hangup);
  BlockTerminationSignals();
  StopSignal stop;
  {
    InterruptWatcher watcher(&stop);
    for (const int number : numbers) {
      kill(getpid(), number);
      AwaitTaken(number);  // by the watcher, or by nobody where it is ignored
    }
  }  // what the watcher took, it has passed on
  _exit(stop.at_once() ? kAtOnce : stop.requested() ? kAsked : kNeither);
}

class StopSignalDeathTest : public testing::Test {
 protected:
  // Other tests of the program have threads.
  StopSignalDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(StopSignalDeathTest, ASecondSignalMeansAtOnce) {
  EXPECT_EXIT(GetSignals({SIGINT}, SIG_DFL), testing::ExitedWithCode(kAsked), "");
  EXPECT_EXIT(GetSignals({SIGTERM}, SIG_DFL), testing::ExitedWithCode(kAsked), "");
  EXPECT_EXIT(GetSignals({SIGINT, SIGINT}, SIG_DFL), testing::ExitedWithCode(kAtOnce), "");
  EXPECT_EXIT(GetSignals({SIGHUP, SIGTERM}, SIG_DFL), testing::ExitedWithCode(kAtOnce), "");
}

TEST_F(StopSignalDeathTest, ATerminalThatClosesAsksForAnEndInOrderHoweverOftenItSaysSo) {
  EXPECT_EXIT(GetSignals({SIGHUP}, SIG_DFL), testing::ExitedWithCode(kAsked), "");
  EXPECT_EXIT(GetSignals({SIGHUP, SIGHUP}, SIG_DFL), testing::ExitedWithCode(kAsked), "");
  EXPECT_EXIT(GetSignals({SIGINT, SIGHUP}, SIG_DFL), testing::ExitedWithCode(kAsked), "");
}

TEST_F(StopSignalDeathTest, UnderNohupAClosedTerminalIsNothing) {
  EXPECT_EXIT(GetSignals({SIGHUP}, SIG_IGN), testing::ExitedWithCode(kNeither), "");
}

}  // namespace
}  // namespace stagecoach
