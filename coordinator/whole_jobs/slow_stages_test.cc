// Slow is not stuck. Symptom: a job whose micro-batch took a stage longer than half a minute, or
// whose checkpoint took long to read, was recovered three times and failed, with every stage hard
// at work.
// Cause: operations ended by the clock on the wall. They end when nothing moves any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Of the slow stages. Every bound of the product is under ten of the shorter minutes, too.
constexpr double kMinute = kSanitized ? 8 : 60, kHour = 60 * kMinute;

JobSpec SlowJob() {
  JobSpec spec = SmallJob(3);
  spec.training.steps = 3;
  return spec;
}

// Micro-batches, loads, shards, profiles, and the file work of verifying, committing and exporting.
TEST(SlowStages, MayTakeLongerThanAnyBoundForAllTheyDo) {
  struct Case {
    double step, load, shard, profile, effect;
  };
  std::string digest;
  for (const Case& c :
       {Case{SimulatedCluster::kStepSeconds, 0, 0, 0, 0},
        // Ten minutes a micro-batch: two, forward and backward, through three stages.
        Case{2 * (2 + 3 - 1) * 10 * kMinute, 0, 0, 0, 0},
        Case{SimulatedCluster::kStepSeconds, 2 * kHour, kHour, 30 * kMinute, 0},
        Case{SimulatedCluster::kStepSeconds, 0, 0, 0, 2 * kHour}}) {
    TestCluster cluster(3);
    cluster.step_seconds = c.step;
    cluster.load_seconds = c.load;
    cluster.shard_seconds = c.shard;
    cluster.profile_seconds = c.profile;
    JobSpec spec = SlowJob();
    if (c.profile > 0) spec.pipeline.partition = PartitionSpec{};  // by what is measured
    cluster.Start(spec).effect_seconds = c.effect;
    const std::string is = cluster.Digest(kJob, 48 * kHour);
    if (digest.empty()) digest = is;
    EXPECT_EQ(is, digest);
    EXPECT_EQ(cluster.View(kJob).recoveries, 0u);
    EXPECT_GT(cluster.now(), 3 * c.step + c.load + c.shard + c.profile + 3 * c.effect);
    EXPECT_THAT(cluster.History(), Not(HasSubstr("no profile")));
  }
}

TEST(SlowStages, StorageThatStandsStillIsNamed) {
  TestCluster cluster(3);
  cluster.Start(SlowJob()).UntilPhase(JobPhase::kRunning);
  cluster.effect_seconds = 2 * kHour;
  cluster.storage_stuck = true;
  cluster.UntilRecovery(1, 10 * kHour);
  EXPECT_THAT(cluster.Message(), AllOf(HasSubstr("begin_checkpoint has got no further for 600 s"),
                                       HasSubstr("is the checkpoint storage stuck?")));
  cluster.effect_seconds = 0;
  cluster.storage_stuck = false;
  cluster.Digest(kJob, 10 * kHour);
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
