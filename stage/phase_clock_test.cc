#include "stage/phase_clock.h"

#include <numeric>

#include "base/random.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

int64_t Nanos(const PhaseClock& phases, Phase phase) {
  return phases.TotalNanos()[static_cast<int>(phase)];
}

TEST(PhaseClock, BooksTimeOnThePhaseThatWasEntered) {
  ManualClock clock(1000);
  PhaseClock phases(&clock);
  clock.AdvanceNanos(5);
  phases.Enter(Phase::kForward);
  clock.AdvanceNanos(7);
  EXPECT_EQ(Nanos(phases, Phase::kIdle), 5);
  EXPECT_EQ(Nanos(phases, Phase::kForward), 7) << "the current phase counts up to now";
  phases.Enter(Phase::kBackward);
  clock.AdvanceNanos(11);
  phases.Enter(Phase::kForward);
  clock.AdvanceNanos(1);
  EXPECT_EQ(Nanos(phases, Phase::kForward), 8);
  EXPECT_EQ(Nanos(phases, Phase::kBackward), 11);
  EXPECT_EQ(phases.current(), Phase::kForward);
  EXPECT_DOUBLE_EQ(phases.Totals()[Phase::kBackward], 11e-9);
}

TEST(PhaseClock, SplitsAWaitAtTheSendTime) {
  ManualClock clock;
  PhaseClock phases(&clock);
  phases.Enter(Phase::kBubble);
  clock.AdvanceNanos(100);
  phases.Move(Phase::kBubble, Phase::kReceiveWait, 30);
  EXPECT_EQ(Nanos(phases, Phase::kBubble), 70);
  EXPECT_EQ(Nanos(phases, Phase::kReceiveWait), 30);
}

TEST(PhaseClock, MovesNoMoreThanTheLastWait) {
  ManualClock clock;
  PhaseClock phases(&clock);
  phases.Enter(Phase::kBubble);
  clock.AdvanceNanos(100);
  phases.Enter(Phase::kForward);
  clock.AdvanceNanos(10);
  phases.Enter(Phase::kBubble);
  clock.AdvanceNanos(20);
  phases.Move(Phase::kBubble, Phase::kReceiveWait, 1000);
  phases.Move(Phase::kBubble, Phase::kReceiveWait, 1000);
  EXPECT_EQ(Nanos(phases, Phase::kBubble), 100) << "the first wait was closed";
  EXPECT_EQ(Nanos(phases, Phase::kReceiveWait), 20);
}

TEST(PhaseClock, PhasesAddUpToTheWallTimeWhateverHappens) {
  ManualClock clock(77);
  PhaseClock phases(&clock);
  const RandomStream stream{.seed = 3};
  for (uint64_t i = 0; i < 5000; ++i) {
    clock.AdvanceNanos(RandomBits(stream, 4 * i) % 1000);
    const Phase a = static_cast<Phase>(RandomBits(stream, 4 * i + 1) % kPhases);
    const Phase b = static_cast<Phase>(RandomBits(stream, 4 * i + 2) % kPhases);
    if (RandomBits(stream, 4 * i + 3) % 2 == 0) {
      phases.Enter(a);
    } else {
      phases.Move(a, b, RandomBits(stream, 4 * i + 3) % 2000);
    }
    const auto totals = phases.TotalNanos();
    for (int64_t nanos : totals) ASSERT_GE(nanos, 0);
    ASSERT_EQ(std::accumulate(totals.begin(), totals.end(), int64_t{0}),
              clock.MonotonicNanos() - 77);
  }
}

}  // namespace
}  // namespace stagecoach
