#include "stage/phase_clock.h"

#include <array>
#include <numeric>
#include <vector>

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
  phases.EnterSince(Phase::kReceiveWait, MicroBatchId(3), 30);
  EXPECT_EQ(phases.current(), Phase::kReceiveWait);
  EXPECT_EQ(Nanos(phases, Phase::kBubble), 70);
  EXPECT_EQ(Nanos(phases, Phase::kReceiveWait), 30);
}

TEST(PhaseClock, SplitsNoMoreThanTheLastWait) {
  ManualClock clock;
  PhaseClock phases(&clock);
  phases.Enter(Phase::kBubble);
  clock.AdvanceNanos(100);
  phases.Enter(Phase::kForward);
  clock.AdvanceNanos(10);
  phases.Enter(Phase::kBubble);
  clock.AdvanceNanos(20);
  phases.EnterSince(Phase::kReceiveWait, MicroBatchId(0), 1000);
  EXPECT_EQ(Nanos(phases, Phase::kBubble), 100) << "the first wait was closed";
  EXPECT_EQ(Nanos(phases, Phase::kReceiveWait), 20);
  EXPECT_EQ(Nanos(phases, Phase::kForward), 10);
}

class Recorder final : public PhaseObserver {
 public:
  void OnInterval(const PhaseInterval& interval) override { intervals.push_back(interval); }
  std::vector<PhaseInterval> intervals;
};

TEST(PhaseClock, StaysInAPhaseThatIsTriedAgain) {
  ManualClock clock;
  Recorder recorder;
  PhaseClock phases(&clock, &recorder);
  phases.Stay(Phase::kSend, MicroBatchId(1));
  clock.AdvanceNanos(5);
  phases.Stay(Phase::kSend, MicroBatchId(1));
  EXPECT_EQ(recorder.intervals.size(), 1u) << "the idle time before it";
  clock.AdvanceNanos(5);
  phases.Stay(Phase::kSend, MicroBatchId(2));
  ASSERT_EQ(recorder.intervals.size(), 2u);
  EXPECT_EQ(recorder.intervals[1].micro_batch, MicroBatchId(1));
  EXPECT_EQ(recorder.intervals[1].end_nanos - recorder.intervals[1].begin_nanos, 10);
}

TEST(PhaseClock, PhasesAddUpToTheWallTimeWhateverHappens) {
  ManualClock clock(77);
  Recorder recorder;
  PhaseClock phases(&clock, &recorder);
  const RandomStream stream{.seed = 3};
  for (uint64_t i = 0; i < 5000; ++i) {
    clock.AdvanceNanos(RandomBits(stream, 4 * i) % 1000);
    const Phase phase = static_cast<Phase>(RandomBits(stream, 4 * i + 1) % kPhases);
    const MicroBatchId id(static_cast<int>(RandomBits(stream, 4 * i + 2) % 3));
    const uint64_t draw = RandomBits(stream, 4 * i + 3);
    if (draw % 3 == 0) phases.Enter(phase, id);
    if (draw % 3 == 1) phases.Stay(phase, id);
    if (draw % 3 == 2) phases.EnterSince(phase, id, static_cast<int64_t>(draw % 2000));
    const auto totals = phases.TotalNanos();
    for (int64_t nanos : totals) ASSERT_GE(nanos, 0);
    ASSERT_EQ(std::accumulate(totals.begin(), totals.end(), int64_t{0}),
              clock.MonotonicNanos() - 77);
  }
  phases.Enter(Phase::kIdle);
  std::array<int64_t, kPhases> observed{};
  int64_t end = 77;
  for (const PhaseInterval& interval : recorder.intervals) {
    ASSERT_EQ(interval.begin_nanos, end) << "no gap, no overlap";
    end = interval.end_nanos;
    observed[static_cast<int>(interval.phase)] += end - interval.begin_nanos;
  }
  EXPECT_EQ(observed, phases.TotalNanos()) << "who watches sees what the totals say";
}

}  // namespace
}  // namespace stagecoach
