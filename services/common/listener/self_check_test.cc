#include "services/common/listener/self_check.h"

#include <gtest/gtest.h>

#include "base/testing/manual_clock.h"
#include "services/common/observe/log.h"

namespace stagecoach {
namespace {

class SelfCheckTest : public ::testing::Test {
 protected:
  SelfCheck::Options Options() {
    SelfCheck::Options options;
    options.dial = [this] {
      clock_.AdvanceNanos(int64_t{2'000'000'000});
      return answer_;
    };
    options.on_dead = [this] { ++deaths_; };
    options.failures_until_unwell = 3;
    options.failures_until_dead = 6;
    options.clock = &clock_;
    return options;
  }
  void Fail(SelfCheck& check, int times) {
    answer_ = absl::UnavailableError("connect: nothing within two seconds");
    for (int i = 0; i < times; ++i) check.Look();
  }
  void Answer(SelfCheck& check) {
    answer_ = absl::OkStatus();
    check.Look();
  }

  ManualClock clock_;
  absl::Status answer_;
  int deaths_ = 0;
};

TEST_F(SelfCheckTest, ThreeFailuresInARowMakeItUnwellAndSixDead) {
  SelfCheck check(Options());
  Fail(check, 2);
  EXPECT_TRUE(check.well()) << "a busy machine may miss one";
  Fail(check, 1);
  EXPECT_FALSE(check.well());
  EXPECT_EQ(deaths_, 0);
  Fail(check, 3);
  EXPECT_EQ(deaths_, 1);
  Fail(check, 6);
  EXPECT_EQ(deaths_, 1) << "it is said once";
}

TEST_F(SelfCheckTest, AnAnswerBetweenMakesItWellAndTheCountBeginsAnew) {
  SelfCheck check(Options());
  Fail(check, 2);
  Answer(check);
  Fail(check, 2);
  EXPECT_TRUE(check.well());
  Fail(check, 3);
  EXPECT_FALSE(check.well());
  Answer(check);
  EXPECT_TRUE(check.well());
  Fail(check, 5);
  EXPECT_EQ(deaths_, 0);
}

// Or whoever dials without a pause ends the server, as its own dial stands in line behind them.
TEST_F(SelfCheckTest, AFailureWhileThePortIsBusyWithOthersDoesNotCount) {
  bool busy = true;
  SelfCheck::Options options = Options();
  options.busy = [&busy] { return busy; };
  SelfCheck check(options);
  Fail(check, 20);
  EXPECT_TRUE(check.well());
  busy = false;
  Fail(check, 2);
  busy = true;
  Fail(check, 20);
  EXPECT_TRUE(check.well());
  busy = false;
  Fail(check, 1);
  EXPECT_FALSE(check.well()) << "the failures before are not forgotten";
  Fail(check, 3);
  EXPECT_EQ(deaths_, 1);
}

TEST_F(SelfCheckTest, ItsThreadLooksUntilItIsStopped) {
  std::atomic<int> looks = 0;
  std::mutex mutex;
  std::condition_variable looked;
  SelfCheck::Options options = Options();
  options.seconds_between = 0.001;
  options.dial = [&] {
    std::lock_guard<std::mutex> lock(mutex);
    ++looks;
    looked.notify_all();
    return absl::OkStatus();
  };
  SelfCheck check(options);
  check.Start();
  {
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_TRUE(looked.wait_for(lock, std::chrono::seconds(20), [&] { return looks >= 3; }));
  }
  check.Stop();
  const int before = looks;
  // It looks a thousand times a second: one that went on would look again within the patience.
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_FALSE(
      looked.wait_for(lock, std::chrono::milliseconds(100), [&] { return looks > before; }));
}

}  // namespace
}  // namespace stagecoach
