#include "services/coordinator/watch/coordinator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "services/common/observe/metrics.h"
#include "services/coordinator/api/waiting_job_testing.h"
#include "services/coordinator/watch/await.h"

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
  ended.sequence = 1;
  metrics.Forget(ended);
  EXPECT_THAT(registry.Render(),
              ::testing::HasSubstr(
                  "stagecoach_stage_recoveries_total{stage=\"stage-7\",reason=\"lost\"} 6"));
}

// The story: a job that was purged while somebody scraped was counted among the former ones and
// among the listed ones, and the next scrape found less.
TEST_F(ForgottenJob, CountsOnceWhereAListStillHasIt) {
  CoordinatorMetrics metrics(manager_.get());
  JobView ended = SubmittedAt(JobPhase::kFailed, 1000);
  ended.id = "forgotten";
  ended.faults = {{"stage-7", "lost", 3}};
  metrics.Forget(ended);
  MetricWriter writer;
  metrics.WriteRecoveries({ended}, {}, writer);
  EXPECT_THAT(writer.Text(),
              ::testing::HasSubstr(
                  "stagecoach_stage_recoveries_total{stage=\"stage-7\",reason=\"lost\"} 3"));
}

TEST_F(ForgottenJob, IsNotFollowedAnewWhereAListStillHasIt) {
  CoordinatorMetrics metrics(manager_.get());
  JobView view = SubmittedAt(JobPhase::kFailed, SystemClock::Get()->UnixSeconds() + 1);
  view.id = "forgotten";
  view.finished_unix_seconds = view.submitted_unix_seconds;
  metrics.Follow(view);
  metrics.Forget(view);
  metrics.Follow(view);
  MetricWriter writer;
  metrics.Write(writer);
  EXPECT_THAT(writer.Text(), ::testing::HasSubstr("stagecoach_jobs_submitted_total 1"));
}

// A rule that watches the age of checkpoints must not fire for a job that writes none.
TEST_F(ForgottenJob, AJobThatWritesTextsHasNoMetricsOfTraining) {
  JobSpec spec = SmallSpec();
  spec.initialize.from = "/nowhere/weights";
  spec.write = WriteSpec{.lines = std::vector<std::string>(9, "a"), .generate = GenerateSpec{}};
  const auto view = Await<absl::StatusOr<JobView>>(
      30, [&](auto done) { manager_->Submit("writing", spec, done); });
  ASSERT_TRUE(view.has_value() && view->ok());
  CoordinatorMetrics metrics(manager_.get());
  MetricWriter writer;
  metrics.Write(writer);
  const std::string text = writer.Text();
  for (const char* line : {"stagecoach_train_target_steps{job_id=\"writing\"} 3",
                           "stagecoach_job_recoveries_total{job_id=\"writing\"} 0",
                           "stagecoach_checkpoint_last_step{job_id=\"job-a\"} 0"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(line));
  }
  for (const char* name :
       {"stagecoach_checkpoint_last_success_timestamp_seconds",
        "stagecoach_train_expected_end_timestamp_seconds", "stagecoach_pipeline_bubble_ratio"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(absl::StrCat(name, "{job_id=\"job-a\"}")));
    EXPECT_THAT(text,
                ::testing::Not(::testing::HasSubstr(absl::StrCat(name, "{job_id=\"writing\"}"))));
  }
}

}  // namespace
}  // namespace stagecoach
