#include "services/coordinator/watch/trace_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "base/testing/manual_clock.h"
#include "services/coordinator/testing/fake_stage_observer.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMillisecond = 1'000'000;

class TraceCollectorTest : public ::testing::Test {
 protected:
  v1::GetTraceResponse Collect(const std::vector<StageTarget>& targets) {
    std::optional<v1::GetTraceResponse> answer;
    collector_.Collect("job", 5, targets, [&](v1::GetTraceResponse response) {
      EXPECT_FALSE(answer.has_value()) << "answered twice";
      answer = std::move(response);
    });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(v1::GetTraceResponse());
  }

  ManualClock clock_{1'000'000'000'000};
  FakeStageObserver stages_{&clock_};
  TraceCollector collector_{&stages_, &clock_};
};

TEST(StageTargets, OfAJobThatLostItsMiddleStageKeepTheirPlaces) {
  JobView view;
  view.stages = {{.stage_name = "a", .address = "a:1", .stage = 0},
                 {.stage_name = "c", .address = "c:1", .stage = 2}};
  const std::vector<StageTarget> targets = TargetsOf(view);
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].stage, 0);
  EXPECT_EQ(targets[1].stage, 2);
}

TEST_F(TraceCollectorTest, TakesTheClockOfTheShortestRoundTrip) {
  FakeStageObserver::Stage& stage = stages_.stages["a:1"];
  stage.clock_offset = 250 * kMillisecond;
  stage.delays = {{9 * kMillisecond, 1 * kMillisecond}, {1 * kMillisecond, 30 * kMillisecond},
                  {kMillisecond / 2, kMillisecond / 4},  // the best one
                  {5 * kMillisecond, 5 * kMillisecond}, {2 * kMillisecond, 2 * kMillisecond},
                  {8 * kMillisecond, 8 * kMillisecond}};
  stage.spans.emplace_back().set_name("forward");
  const v1::GetTraceResponse trace = Collect({{0, "stage-a", "a:1"}});
  ASSERT_EQ(trace.stages_size(), 1);
  const v1::StageTrace& part = trace.stages(0);
  EXPECT_EQ(part.name(), "stage-a");
  EXPECT_EQ(part.error(), "");
  ASSERT_EQ(part.spans_size(), 1);
  EXPECT_EQ(part.clock_error_nanos(), 3 * kMillisecond / 8);
  EXPECT_EQ(part.clock_offset_nanos(), 250 * kMillisecond + kMillisecond / 8);
  EXPECT_LE(std::abs(part.clock_offset_nanos() - stage.clock_offset), part.clock_error_nanos());
  ASSERT_EQ(stages_.trace_requests.size(), 1u);
  EXPECT_EQ(stages_.trace_requests[0].job_id(), "job");
  EXPECT_EQ(stages_.trace_requests[0].steps(), 5u);
}

// The job ran on between the two answers: together they would have one step more than was asked
// for.
TEST_F(TraceCollectorTest, KeepsTheLastStepsOfAllStagesTogether) {
  for (uint64_t step = 1; step <= 6; ++step) {
    if (step <= 5) stages_.stages["a:1"].spans.emplace_back().set_step(step);
    if (step >= 2) stages_.stages["b:1"].spans.emplace_back().set_step(step);
  }
  const v1::GetTraceResponse trace = Collect({{0, "stage-a", "a:1"}, {1, "stage-b", "b:1"}});
  const auto steps = [&trace](int stage) {
    std::vector<uint64_t> of;
    for (const v1::TraceSpan& span : trace.stages(stage).spans()) of.push_back(span.step());
    return of;
  };
  EXPECT_THAT(steps(0), testing::ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(steps(1), testing::ElementsAre(2, 3, 4, 5, 6));
}

TEST_F(TraceCollectorTest, TheErrorBoundHoldsHoweverUnevenTheWays) {
  for (int64_t there = 0; there <= 4; ++there) {
    FakeStageObserver::Stage& stage = stages_.stages["a:1"];
    stage = {};
    stage.clock_offset = -7 * kMillisecond;
    stage.delays.assign(6, {there * kMillisecond, (4 - there) * kMillisecond});
    const v1::GetTraceResponse trace = Collect({{0, "stage-a", "a:1"}});
    EXPECT_LE(std::abs(trace.stages(0).clock_offset_nanos() - stage.clock_offset),
              trace.stages(0).clock_error_nanos());
  }
}

TEST_F(TraceCollectorTest, NamesStagesThatDoNotAnswerAndGivesTheOthers) {
  stages_.stages["a:1"].spans.emplace_back();
  stages_.stages["b:1"].error = absl::DeadlineExceededError("x");
  stages_.stages["c:1"].error = absl::UnavailableError("ipv4:10.0.0.1:1 refused");
  stages_.stages["d:1"].error = absl::UnimplementedError("");
  const v1::GetTraceResponse trace =
      Collect({{0, "a", "a:1"}, {1, "b", "b:1"}, {2, "c", "c:1"}, {3, "d", "d:1"}});
  ASSERT_EQ(trace.stages_size(), 4);
  EXPECT_EQ(trace.stages(0).error(), "");
  EXPECT_EQ(trace.stages(0).spans_size(), 1);
  EXPECT_EQ(trace.stages(1).error(), "b did not answer in time");
  EXPECT_EQ(trace.stages(2).error(), "c cannot be reached");
  EXPECT_THAT(trace.stages(3).error(), HasSubstr("version"));
  EXPECT_EQ(trace.stages(2).stage(), 2);
}

TEST_F(TraceCollectorTest, AsksAllStagesBeforeTheFirstAnswers) {
  stages_.hold = true;
  bool done = false;
  collector_.Collect("job", 0, {{0, "a", "a:1"}, {1, "b", "b:1"}},
                     [&](const v1::GetTraceResponse&) { done = true; });
  ASSERT_EQ(stages_.held.size(), 2u);
  stages_.held[1]();
  EXPECT_FALSE(done);
  stages_.held[0]();
  EXPECT_TRUE(done);
}

TEST_F(TraceCollectorTest, AJobWithoutStagesHasAnEmptyTrace) {
  EXPECT_EQ(Collect({}).stages_size(), 0);
}

}  // namespace
}  // namespace stagecoach
