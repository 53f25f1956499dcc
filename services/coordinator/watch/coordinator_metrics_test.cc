#include "services/coordinator/watch/coordinator_metrics.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stagecoach
