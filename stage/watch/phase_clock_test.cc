#include "stage/watch/phase_clock.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <vector>

#include "base/numbers/random.h"
#include "base/testing/manual_clock.h"
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

std::vector<std::tuple<Phase, int, int64_t, int64_t>> Tuples(
    const std::vector<PhaseInterval>& intervals) {
  std::vector<std::tuple<Phase, int, int64_t, int64_t>> tuples;
  for (const PhaseInterval& i : intervals) {
    tuples.emplace_back(i.phase, i.micro_batch.value, i.begin_nanos, i.end_nanos);
  }
  return tuples;
}

// The host has queued two forwards and waits; the device computes them while it does.
TEST(PhaseClock, TheDevicesComputingGoesBeforeWhatTheHostDid) {
  const MicroBatchId a(0), b(1);
  const std::vector<PhaseInterval> host = {{Phase::kForward, a, 0, 10},
                                           {Phase::kForward, b, 10, 20},
                                           {Phase::kBubble, b, 20, 200},
                                           {Phase::kOptimizer, MicroBatchId(), 200, 300}};
  const std::vector<PhaseInterval> device = {{Phase::kForward, a, 5, 105},
                                             {Phase::kForward, b, 105, 155},
                                             {Phase::kBackward, a, 190, 290}};
  using Interval = std::tuple<Phase, int, int64_t, int64_t>;
  const int none = MicroBatchId().value;
  const std::vector<Interval> expected = {
      {Phase::kForward, 0, 0, 5},         {Phase::kForward, 0, 5, 10},
      {Phase::kForward, 0, 10, 20},       {Phase::kForward, 0, 20, 105},
      {Phase::kForward, 1, 105, 155},     {Phase::kBubble, 1, 155, 190},
      {Phase::kBackward, 0, 190, 200},    {Phase::kBackward, 0, 200, 290},
      {Phase::kOptimizer, none, 290, 300}};
  EXPECT_EQ(Tuples(Overlay(host, device)), expected);
  EXPECT_EQ(Tuples(Overlay(host, {})), Tuples(host)) << "without a device, the host";
}

TEST(PhaseClock, OverlaysWithoutAGapWhateverComes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    uint64_t draws = 0;
    const auto draw = [&](int most) {
      return static_cast<int64_t>(RandomBits({.seed = seed}, draws++) % (most + 1));
    };
    std::vector<PhaseInterval> host, device;
    for (int64_t at = 50; host.size() < 8;) {
      const int64_t begin = at;
      host.push_back({Phase::kBubble, MicroBatchId(), begin, at += draw(20)});
    }
    for (int64_t at = draw(100); device.size() < 8;) {
      const int64_t begin = at += draw(9);
      device.push_back({Phase::kForward, MicroBatchId(), begin, at += draw(9)});
    }
    int64_t at = 50, computed = 0, expected = 0;
    for (const PhaseInterval& interval : Overlay(host, device)) {
      EXPECT_EQ(interval.begin_nanos, at) << "seed " << seed;
      at = interval.end_nanos;
      if (interval.phase == Phase::kForward) computed += at - interval.begin_nanos;
    }
    EXPECT_EQ(at, host.back().end_nanos);
    for (const PhaseInterval& interval : device) {
      expected += std::max<int64_t>(
          0, std::min(interval.end_nanos, at) - std::max<int64_t>(interval.begin_nanos, 50));
    }
    EXPECT_EQ(computed, expected) << "seed " << seed;
  }
}

TEST(PhaseClock, BooksADeferredStepAtItsEnd) {
  ManualClock clock;
  PhaseClock phases(&clock);
  clock.AdvanceNanos(5);
  phases.Resolve({});  // nothing was deferred
  phases.Defer();
  phases.Enter(Phase::kForward, MicroBatchId(0));
  clock.AdvanceNanos(10);
  phases.Enter(Phase::kBubble);
  clock.AdvanceNanos(90);
  EXPECT_EQ(phases.Totals().Sum(), 5e-9) << "counters must not fall: what is not sure waits";
  EXPECT_EQ(phases.current(), Phase::kBubble);
  const PhaseInterval device{Phase::kForward, MicroBatchId(0), 7, 67};
  phases.Resolve(std::span(&device, 1));
  EXPECT_EQ(Nanos(phases, Phase::kIdle), 5);
  EXPECT_EQ(Nanos(phases, Phase::kForward), 62) << "launched from 5, computed until 67";
  EXPECT_EQ(Nanos(phases, Phase::kBubble), 38);
  clock.AdvanceNanos(3);
  EXPECT_EQ(Nanos(phases, Phase::kBubble), 41) << "as ever from here on";
}

}  // namespace
}  // namespace stagecoach
