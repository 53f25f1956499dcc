// Symptom: a disk that stalled for some seconds while the journal was written, or a large job being
// planned, cost every job of the cluster a recovery: all leases had "ended", and steps whose
// answers had long come were "overdue". Cause: leases and deadlines were judged by the moment at
// which the job loop got round to it, not by the moments at which heartbeats and answers arrived,
// and the time before a command went out counted as the stages'. The same with threads:
// job_manager_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

// Longer than leases (1.5 s), a step's deadline (60 s) and what a queued job is given (20 s).
constexpr double kStallSeconds = 200;

void RunTwoJobs(TestCluster& cluster) {
  cluster.Start(SmallJob(2), "a").Start(SmallJob(2), "b");
  for (const char* id : {"a", "b"}) {
    EXPECT_TRUE(cluster.RunToEnd(id, 10000));
    cluster.ExpectGoldenEnd(id, id);
    EXPECT_EQ(cluster.View(id).recoveries, 0u) << cluster.Message(id);
  }
  for (const StageView& stage : cluster.loop().ListStages()) {
    EXPECT_NE(stage.state, StageState::kLost) << stage.registration.name;
  }
}

TEST(BusyLoopTest, AStalledDiskExpiresNobodyAndLosesNothing) {
  uint64_t first = 0, last = 0;
  {
    TestCluster cluster(4);
    first = cluster.disk().syncs();
    RunTwoJobs(cluster);
    last = cluster.disk().syncs();
  }
  ASSERT_GT(last, first + 20);
  for (uint64_t at = first + 1; at <= last && !HasFailure(); at += kSanitized ? 11 : 3) {
    SCOPED_TRACE(absl::StrCat("stalled at sync ", at));
    TestCluster cluster(4);
    cluster.disk().on_sync = [&cluster, at] {
      if (cluster.disk().syncs() == at) cluster.KeepLoopBusy(kStallSeconds);
    };
    RunTwoJobs(cluster);
  }
}

// Who is really silent during the stall is lost after it, and not later.
TEST(BusyLoopTest, AStageThatFallsSilentDuringAStallIsLostAfterIt) {
  TestCluster cluster(3);
  cluster.Start().UntilStep(2);
  bool stalled = false;
  cluster.disk().on_sync = [&] {
    if (std::exchange(stalled, true)) return;
    cluster.StopStage(1);
    cluster.KeepLoopBusy(kStallSeconds);
  };
  ASSERT_TRUE(cluster.RunUntil([&] { return stalled; }));
  const double end = cluster.now();
  EXPECT_THAT(cluster.UntilRecovery(1).Message(), ::testing::HasSubstr("stage-1 was silent"));
  EXPECT_LE(cluster.now() - end, 2.0);
  cluster.Digest();
}

}  // namespace
}  // namespace stagecoach
