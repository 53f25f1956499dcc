#include "stage/watch/trace_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "base/testing/manual_clock.h"
#include "stage/watch/step_tracer.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TraceSpan Span(const std::string& job, uint64_t step, int64_t end, uint64_t generation = 1) {
  TraceSpan span;
  span.job = TraceJob(job);
  span.generation = generation;
  span.step = step;
  span.begin_unix_nanos = end - 1;
  span.end_unix_nanos = end;
  return span;
}

std::vector<int64_t> Ends(const std::vector<TraceSpan>& spans) {
  std::vector<int64_t> ends;
  for (const TraceSpan& span : spans) ends.push_back(span.end_unix_nanos);
  return ends;
}

TEST(TraceRing, KeepsTheNewestSpansInOrderOfTheirEnd) {
  TraceRing ring(4);
  EXPECT_THAT(ring.Read("a", 0), IsEmpty());
  for (int64_t end : {10, 30, 20, 60, 50, 40}) ring.Add(Span("a", 1, end));
  EXPECT_THAT(Ends(ring.Read("a", 0)), ElementsAre(20, 40, 50, 60));
}

TEST(TraceRing, ReadsTheLastStepsOfOneJob) {
  TraceRing ring(100);
  for (uint64_t step = 1; step <= 5; ++step) {
    ring.Add(Span("a", step, int64_t(10 * step)));
    ring.Add(Span("b", step, int64_t(10 * step + 5)));
  }
  ring.Add(Span("a", 4, 51));  // the link finishes a message of step 4 while step 5 runs
  EXPECT_THAT(Ends(ring.Read("a", 2)), ElementsAre(40, 50, 51));
  EXPECT_THAT(Ends(ring.Read("a", 1)), ElementsAre(50)) << "step 5 is the newest begun";
  EXPECT_THAT(Ends(ring.Read("b", 1)), ElementsAre(55));
  EXPECT_THAT(ring.Read("c", 1), IsEmpty());
}

TEST(TraceRing, ARepeatedStepIsAnotherStep) {
  TraceRing ring(100);
  ring.Add(Span("a", 7, 10, 1));
  ring.Add(Span("a", 8, 20, 1));
  ring.Add(Span("a", 7, 30, 2));
  EXPECT_THAT(Ends(ring.Read("a", 1)), ElementsAre(30)) << "not what the lost generation did";
  EXPECT_THAT(Ends(ring.Read("a", 2)), ElementsAre(20, 30));
}

// The evaluation after step 6 has its number and tries of its own: a trace of the last steps must
// not hold nothing but evaluation batches.
TEST(TraceRing, TriesAndEvaluationsOfAStepBelongToIt) {
  TraceRing ring(100);
  int64_t end = 0;
  for (const auto& [step, attempt] :
       std::vector<std::pair<int, int>>{{4, 1}, {5, 2}, {6, 3}, {6, 4}, {6, 5}}) {
    TraceSpan span = Span("a", static_cast<uint64_t>(step), end += 10);
    span.attempt = static_cast<uint32_t>(attempt);
    ring.Add(span);
  }
  EXPECT_THAT(Ends(ring.Read("a", 1)), ElementsAre(30, 40, 50));
  EXPECT_THAT(Ends(ring.Read("a", 2)), ElementsAre(20, 30, 40, 50));
}

// Protects a reader from a writer that overtakes it: no torn and no doubled span.
TEST(TraceRing, ReadsWhileOthersWrite) {
  TraceRing ring(1000);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int64_t i = 1; !stop; ++i) ring.Add(Span("a", uint64_t(i), i));
  });
  for (int round = 0; round < 200; ++round) {
    const std::vector<TraceSpan> spans = ring.Read("a", 0);
    ASSERT_LE(spans.size(), 1000u);
    for (size_t i = 0; i < spans.size(); ++i) {
      ASSERT_EQ(spans[i].begin_unix_nanos + 1, spans[i].end_unix_nanos);
      ASSERT_EQ(spans[i].step, uint64_t(spans[i].end_unix_nanos));
      ASSERT_TRUE(i == 0 || spans[i].step == spans[i - 1].step + 1) << "consecutive";
    }
  }
  stop = true;
  writer.join();
}

TEST(TraceRing, TellsATransferApart) {
  LinkTransfer transfer;
  transfer.sent = true;
  transfer.kind = MessageKind::kGradient;
  transfer.upstream_peer = true;
  transfer.fence = {.job = "a", .generation = 2, .step = 9, .attempt = 1};
  transfer.micro_batch = MicroBatchId(3);
  transfer.bytes = 400;
  transfer.begin_unix_nanos = 5;
  transfer.end_unix_nanos = 8;
  const TraceSpan span = TransferSpan(transfer);
  EXPECT_EQ(span.track, TraceTrack::kSend);
  EXPECT_EQ(span.job, TraceJob("a"));
  EXPECT_EQ(span.step, 9u);
  EXPECT_EQ(span.attempt, 1u);
  EXPECT_EQ(span.micro_batch, MicroBatchId(3));
  EXPECT_EQ(span.bytes, 400);
  EXPECT_EQ(span.end_unix_nanos - span.begin_unix_nanos, 3);
  EXPECT_TRUE(span.upstream);
  transfer.sent = false;
  EXPECT_EQ(TransferSpan(transfer).track, TraceTrack::kReceive);
}

class StepTracerTest : public testing::Test {
 protected:
  void Spend(Phase phase, int micro_batch, int64_t nanos) {
    phases_.Enter(phase, MicroBatchId(micro_batch));
    clock_.AdvanceNanos(nanos);
  }

  ManualClock clock_{1000};
  TraceRing ring_{100};
  std::vector<std::pair<Phase, long>> micro_batches_;  // nanoseconds
  StepTracer tracer_{&ring_, &clock_, [this](Phase phase, double seconds) {
                       micro_batches_.emplace_back(phase, std::lround(seconds * 1e9));
                     }};
  PhaseClock phases_{&clock_, &tracer_};
  const Fence fence_{.job = "a", .term = 1, .generation = 3, .step = 5, .attempt = 2};
};

TEST_F(StepTracerTest, WritesThePhasesOfAStep) {
  clock_.AdvanceNanos(500);
  tracer_.Begin(fence_, StageId(1));
  Spend(Phase::kForward, 0, 30);
  Spend(Phase::kSend, 0, 2);
  Spend(Phase::kBubble, 0, 40);
  phases_.EnterSince(Phase::kReceiveWait, MicroBatchId(0), 10);
  Spend(Phase::kBackward, 0, 20);  // the loss
  Spend(Phase::kBackward, 0, 25);
  Spend(Phase::kBackward, 1, 1);
  Spend(Phase::kOptimizer, -1, 7);
  phases_.Enter(Phase::kIdle);
  tracer_.End();
  Spend(Phase::kForward, 0, 100);  // of no step
  phases_.Enter(Phase::kIdle);
  std::vector<std::tuple<Phase, int, int64_t>> spans;
  int64_t end = 1500;
  for (const TraceSpan& span : ring_.Read("a", 0)) {
    EXPECT_EQ(span.begin_unix_nanos, end) << "no gap inside a step";
    end = span.end_unix_nanos;
    EXPECT_EQ(span.step, 5u);
    EXPECT_EQ(span.attempt, 2u);
    EXPECT_EQ(span.stage, StageId(1));
    spans.emplace_back(span.phase, span.micro_batch.value, end - span.begin_unix_nanos);
  }
  using Row = std::tuple<Phase, int, int64_t>;
  EXPECT_THAT(spans, ElementsAre(Row{Phase::kForward, 0, 30}, Row{Phase::kSend, 0, 2},
                                 Row{Phase::kBubble, 0, 30}, Row{Phase::kReceiveWait, 0, 10},
                                 Row{Phase::kBackward, 0, 45}, Row{Phase::kBackward, 1, 1},
                                 Row{Phase::kOptimizer, -1, 7}));
  EXPECT_THAT(micro_batches_,
              ElementsAre(std::pair(Phase::kForward, 30l), std::pair(Phase::kBackward, 45l),
                          std::pair(Phase::kBackward, 1l)));
}

TEST_F(StepTracerTest, WorksWithoutARing) {
  StepTracer tracer(nullptr, &clock_, nullptr);
  tracer.Begin(fence_, StageId(0));
  tracer.OnInterval({Phase::kForward, MicroBatchId(0), 0, 10});
  tracer.End();
}

}  // namespace
}  // namespace stagecoach
