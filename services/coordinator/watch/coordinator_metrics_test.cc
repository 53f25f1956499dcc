#include "services/coordinator/watch/coordinator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/observe/metrics.h"
#include "services/coordinator/api/waiting_job_testing.h"

namespace stagecoach {
namespace {

JobView SubmittedAt(JobPhase phase, double submitted_unix_seconds) {
  JobView view;
  view.phase = phase;
  view.submitted_unix_seconds = submitted_unix_seconds;
  return view;
}

TEST(CoordinatorMetrics, TheQueueIsAsOldAsItsOldestJob) {
  EXPECT_EQ(OldestPendingSeconds({}, 1000), 0);
  EXPECT_EQ(OldestPendingSeconds(
                {SubmittedAt(JobPhase::kRunning, 100), SubmittedAt(JobPhase::kFailed, 50)}, 1000),
            0)
      << "running and ended jobs do not wait";
  EXPECT_EQ(OldestPendingSeconds(
                {SubmittedAt(JobPhase::kSubmitted, 700), SubmittedAt(JobPhase::kSubmitted, 400),
                 SubmittedAt(JobPhase::kRunning, 100)},
                1000),
            600);
  EXPECT_EQ(OldestPendingSeconds({SubmittedAt(JobPhase::kSubmitted, 1001)}, 1000), 0)
      << "a clock that was set back gives no negative age";
  JobView recovering = SubmittedAt(JobPhase::kLoading, 100);
  recovering.step = 7;
  EXPECT_EQ(OldestPendingSeconds({recovering, SubmittedAt(JobPhase::kHeld, 100)}, 1000), 0)
      << "neither waits to begin";
}

using ForgottenJob = WaitingJobTest;

// A counter that goes back looks like a restart of the process.
TEST_F(ForgottenJob, TakesNoCountWithIt) {
  CoordinatorMetrics metrics(manager_.get());
  MetricsRegistry registry;
  registry.AddSource([&metrics](MetricWriter& writer) { metrics.Write(writer); });
  JobView ended = SubmittedAt(JobPhase::kFailed, SystemClock::Get()->UnixSeconds());
  ended.id = "forgotten";
  ended.faults = {{"stage-7", "lost", 3}};
  metrics.Forget(ended);
  metrics.Forget(ended);
  EXPECT_THAT(registry.Render(),
              ::testing::HasSubstr(
                  "stagecoach_stage_recoveries_total{stage=\"stage-7\",reason=\"lost\"} 6"));
}

}  // namespace
}  // namespace stagecoach
