// Slow is not stuck. Symptom: a job whose micro-batch took a stage longer than half a minute, or whose
// checkpoint took long to read, was recovered three times and failed, with every stage hard at work.
// Cause: operations ended by the clock on the wall. They end when nothing moves any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kSlowJob[] = "slow-1";
// Of the slow stages. Every bound of the product is under ten of the shorter minutes, too.
constexpr double kMinute = kSanitized ? 8 : 60, kHour = 60 * kMinute;

JobSpec SlowJob(int stages) {
  JobSpec spec = SmallJob(stages);
  spec.training.steps = 3;
  return spec;
}

// Of a job that has never been slow.
std::string DigestWithoutSlowStages() {
  SimulatedCluster cluster(3);
  EXPECT_TRUE(cluster.Submit(kSlowJob, SlowJob(3)).ok());
  EXPECT_TRUE(cluster.RunToEnd(kSlowJob));
  return cluster.View(kSlowJob).weights_digest;
}

void ExpectSlowButUndisturbedEnd(SimulatedCluster& cluster) {
  ASSERT_TRUE(cluster.RunToEnd(kSlowJob, 48 * kHour)) << cluster.View(kSlowJob).message;
  const JobView view = cluster.View(kSlowJob);
  EXPECT_EQ(view.phase, JobPhase::kSucceeded) << view.message;
  EXPECT_EQ(view.recoveries, 0u);
  EXPECT_EQ(view.weights_digest, DigestWithoutSlowStages());
  EXPECT_THAT(cluster.violations, IsEmpty());
}

const JobRecord* FirstRecovery(const std::vector<JobRecord>& records) {
  for (const JobRecord& record : records) {
    if (record.kind == JobRecord::Kind::kRecovery) return &record;
  }
  return nullptr;
}

TEST(SlowStages, TenMinutesAMicroBatchOnThreeStagesSucceed) {
  SimulatedCluster cluster(3);
  // Two micro-batches, forward and backward, through three stages.
  cluster.step_seconds = 2 * (2 + 3 - 1) * 10 * kMinute;
  ASSERT_TRUE(cluster.Submit(kSlowJob, SlowJob(3)).ok());
  ExpectSlowButUndisturbedEnd(cluster);
  EXPECT_GT(cluster.now(), 3 * cluster.step_seconds);
}

TEST(SlowStages, LoadsShardsAndProfilesMayTakeLongerThanAnyBound) {
  SimulatedCluster cluster(3);
  cluster.load_seconds = 2 * kHour;
  cluster.shard_seconds = kHour;
  cluster.profile_seconds = 30 * kMinute;
  JobSpec spec = SlowJob(3);
  spec.pipeline.partition = PartitionSpec{};  // by what is measured
  ASSERT_TRUE(cluster.Submit(kSlowJob, spec).ok());
  ExpectSlowButUndisturbedEnd(cluster);
  for (const JobRecord& record : cluster.Records(kSlowJob)) {
    EXPECT_THAT(record.message, Not(HasSubstr("no profile")));
  }
}

TEST(SlowStages, CheckpointsMayTakeHoursToVerifyToCommitAndToExport) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit(kSlowJob, SlowJob(3)).ok());
  cluster.effect_seconds = 2 * kHour;
  ExpectSlowButUndisturbedEnd(cluster);
  EXPECT_GT(cluster.now(), 3 * cluster.effect_seconds);
}

TEST(SlowStages, StorageThatStandsStillIsNamed) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit(kSlowJob, SlowJob(3)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSlowJob).phase == JobPhase::kRunning; }));
  cluster.effect_seconds = 2 * kHour;
  cluster.storage_stuck = true;
  const std::vector<JobRecord>& records = cluster.Records(kSlowJob);
  ASSERT_TRUE(cluster.RunUntil([&] { return FirstRecovery(records) != nullptr; }, 10 * kHour));
  EXPECT_THAT(FirstRecovery(records)->message,
              AllOf(HasSubstr("begin_checkpoint has got no further for 600 s"),
                    HasSubstr("is the checkpoint storage stuck?")));
  cluster.effect_seconds = 0;
  cluster.storage_stuck = false;
  ASSERT_TRUE(cluster.RunToEnd(kSlowJob, 10 * kHour)) << cluster.View(kSlowJob).message;
  EXPECT_EQ(cluster.View(kSlowJob).phase, JobPhase::kSucceeded);
}

TEST(SlowStages, WhoStandsStillInTheMiddleOfALongStepIsFoundAndNamed) {
  SimulatedCluster cluster(4);
  cluster.step_seconds = 80 * kMinute;
  ASSERT_TRUE(cluster.Submit(kSlowJob, SlowJob(3)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSlowJob).phase == JobPhase::kRunning; }));
  const double began = cluster.now();
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.now() > began + 30 * kMinute; }, kHour));
  cluster.stage(1).hung = true;
  const double hung = cluster.now();
  const std::vector<JobRecord>& records = cluster.Records(kSlowJob);
  ASSERT_TRUE(cluster.RunUntil([&] { return FirstRecovery(records) != nullptr; }, kHour));
  const double bound = JobLimits{}.first_step_deadline_seconds;
  EXPECT_LE(cluster.now() - hung, bound + 1) << "with the time between two heartbeats";
  EXPECT_GE(cluster.now() - hung, bound - 1);
  EXPECT_THAT(FirstRecovery(records)->message,
              AllOf(HasSubstr("no operation done for 60."),
                    HasSubstr("stage 1 (stage-1) says nothing of what it waits for"),
                    HasSubstr("stage 0 (stage-0) says: activation of micro-batch 0")));
  ASSERT_TRUE(cluster.RunToEnd(kSlowJob, 48 * kHour)) << "on the stage that was left over";
  EXPECT_EQ(cluster.View(kSlowJob).phase, JobPhase::kSucceeded) << cluster.View(kSlowJob).message;
  EXPECT_EQ(cluster.View(kSlowJob).recoveries, 1u);
  EXPECT_EQ(cluster.View(kSlowJob).weights_digest, DigestWithoutSlowStages());
}

TEST(SlowStages, WhoIsStoppedInALongStepIsStillLostWithItsLease) {
  SimulatedCluster cluster(4);
  cluster.step_seconds = 80 * kMinute;
  ASSERT_TRUE(cluster.Submit(kSlowJob, SlowJob(3)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSlowJob).phase == JobPhase::kRunning; }));
  cluster.StopStage(2);
  const double stopped = cluster.now();
  const std::vector<JobRecord>& records = cluster.Records(kSlowJob);
  ASSERT_TRUE(cluster.RunUntil([&] { return FirstRecovery(records) != nullptr; }));
  EXPECT_LE(cluster.now() - stopped, 2);
}

TEST(SlowStages, AStageHearsWhetherTheOthersOfItsJobGetOn) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  for (const char* name : {"a", "b", "idle"}) {
    ASSERT_TRUE(
        fleet.Register({.name = name, .incarnation = "1", .address = "x:1"}, {}, &lost).ok());
  }
  fleet.Hold("job", {"a", "b"});
  const auto renew = [&fleet](const char* name, uint64_t progress, double seconds) {
    StageHeartbeat heartbeat{.name = name, .incarnation = "1", .progress = progress};
    EXPECT_TRUE(fleet.Renew(heartbeat, {seconds, seconds}).ok());
    return fleet.JobProgressFor(name);
  };
  const uint64_t before = renew("a", 0, 1);
  EXPECT_EQ(renew("a", 0, 2), before) << "a waits, and nobody works";
  renew("b", 5, 3);
  const uint64_t moved = renew("a", 0, 3);
  EXPECT_NE(moved, before) << "b got on";
  renew("b", 5, 4);
  renew("idle", 9, 4);
  EXPECT_EQ(renew("a", 0, 4), moved) << "b stands still; the third one has nothing to do with it";
  EXPECT_EQ(fleet.JobProgressFor("idle"), 0u);
  EXPECT_EQ(fleet.SignsOf("b").moved_seconds, 3);
  EXPECT_EQ(fleet.SignsOf("a").moved_seconds, 0) << "it has never told of any progress";
}

}  // namespace
}  // namespace stagecoach
