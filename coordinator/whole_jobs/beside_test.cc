// Whole jobs whose checkpoints are written beside the steps, and what fails meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A write lasts longer than two steps: so many events have one under way.
constexpr double kShardSeconds = 2.5 * SimulatedCluster::kStepSeconds;
constexpr int kEventStride = kSanitized ? 61 : 3;

// Golden()'s job, with a shard that takes so long: it has other events.
int EventsWithSlowShards() {
  static const int events = [] {
    TestCluster cluster(2);
    cluster.shard_seconds = kShardSeconds;
    cluster.Start().Digest();
    return cluster.events();
  }();
  return events;
}

void AtEveryEventBeside(const std::function<void(TestCluster&, int at)>& work) {
  for (int at = 3; at < EventsWithSlowShards() - 2 && !::testing::Test::HasFailure();
       at += kEventStride) {
    SCOPED_TRACE(absl::StrCat("at event ", at));
    TestCluster cluster(2);
    cluster.shard_seconds = kShardSeconds;
    cluster.Start();
    while (cluster.events() < at) cluster.Step();
    work(cluster, at);
  }
}

std::vector<const JobRecord*> CheckpointRecords(const TestCluster& cluster) {
  std::vector<const JobRecord*> found;
  for (const JobRecord& record : cluster.Records(kJob)) {
    if (record.kind == JobRecord::Kind::kCheckpoint) found.push_back(&record);
  }
  return found;
}

TEST(BesideTest, StepsGoOnWhileShardsAreWrittenAndTheWeightsAreTheSame) {
  TestCluster cluster(2);
  cluster.shard_seconds = kShardSeconds;
  cluster.Start().ExpectGoldenEnd();
  EXPECT_EQ(cluster.shards_beside, 4) << "of the checkpoints of steps 3 and 6; 7 is the last";
  std::vector<uint64_t> steps;
  for (const JobRecord* record : CheckpointRecords(cluster)) {
    EXPECT_EQ(record->message, "");
    EXPECT_GT(record->step_seconds, kShardSeconds);
    steps.push_back(record->step);
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(3, 6, 7));
  // Two steps were done by then.
  const auto& records = cluster.Records(kJob);
  const auto saved = std::find_if(records.begin(), records.end(), [](const JobRecord& record) {
    return record.kind == JobRecord::Kind::kCheckpoint;
  });
  ASSERT_NE(saved, records.end());
  EXPECT_EQ((saved - 1)->step, 5u);
}

TEST(BesideTest, OneThatIsDueWaitsForTheOneUnderWay) {
  JobSpec spec = SmallJob(2);
  spec.checkpoint.every_steps = 1;
  TestCluster cluster(2);
  cluster.shard_seconds = kShardSeconds;
  cluster.Start(spec).ExpectGoldenEnd();
  std::vector<uint64_t> steps;
  for (const JobRecord* record : CheckpointRecords(cluster)) steps.push_back(record->step);
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST(BesideTest, WithoutRoomForCopiesTrainingWaits) {
  TestCluster cluster(2);
  cluster.room_for_copies = false;
  cluster.shard_seconds = kShardSeconds;
  cluster.Start().ExpectGoldenEnd();
  EXPECT_EQ(cluster.shards_beside, 0);
  EXPECT_EQ(CheckpointRecords(cluster).size(), 3u);
}

TEST(BesideTest, SurvivesAStageKilledAtAnyEvent) {
  AtEveryEventBeside([](TestCluster& cluster, int at) {
    cluster.KillStage(at % 2);
    cluster.Wait(0.3).RestartStage(at % 2);
    cluster.ExpectGoldenEnd();
    EXPECT_THAT(cluster.Saved(), Not(Contains(HasSubstr(".tmp")))) << "abandoned";
  });
}

TEST(BesideTest, SurvivesTheCoordinatorKilledAtAnyEvent) {
  AtEveryEventBeside([](TestCluster& cluster, int) {
    cluster.CrashCoordinator();
    cluster.Wait(0.4).StartCoordinator();
    cluster.ExpectGoldenEnd();
    EXPECT_THAT(cluster.Saved(), Not(Contains(HasSubstr(".tmp")))) << "swept";
  });
}

TEST(BesideTest, CancelsAtAnyEvent) {
  AtEveryEventBeside([](TestCluster& cluster, int) {
    if (IsTerminal(cluster.Phase())) return;
    ASSERT_TRUE(cluster.Cancel(kJob).ok());
    cluster.End(JobPhase::kCancelled);
    cluster.Wait(3);
    EXPECT_EQ(cluster.Phase(), JobPhase::kCancelled);
    EXPECT_FALSE(cluster.stage(0).loaded) << "released";
    EXPECT_THAT(cluster.Saved(), Not(Contains(HasSubstr(".tmp"))));
  });
}

TEST(BesideTest, ADrainAtAnyEventWaitsForWhatIsUnderWay) {
  for (const bool save : {false, true}) {
    AtEveryEventBeside([save](TestCluster& cluster, int) {
      bool drained = false;
      cluster.loop().Drain(save, [&] { drained = true; });
      ASSERT_TRUE(cluster.RunUntil([&] { return drained; }, 10));
      const JobView view = cluster.View(kJob);
      if (view.phase == JobPhase::kRunning) {
        EXPECT_THAT(cluster.Saved(), Not(Contains(HasSubstr(".tmp")))) << "nothing is half written";
      }
      if (save && view.phase == JobPhase::kRunning && view.step > 0) {
        EXPECT_EQ(view.last_checkpoint_step, static_cast<int64_t>(view.step));
      }
      cluster.RestartCoordinator();
      cluster.ExpectGoldenEnd(save ? "saved" : "not saved");
    });
  }
}

// The story: the copies of step 6 are taken, training goes on, and a process dies before the
// commit. The job goes on from step 3, the newest that is committed, and the next checkpoint is
// whole.
TEST(BesideTest, AProcessThatDiesBetweenCopyAndCommitCostsThatCheckpointOnly) {
  TestCluster cluster(2);
  cluster.Start().UntilSaved(3);
  cluster.shard_seconds = 60;
  cluster.Until([](const JobView& view) { return view.step == 7; });
  EXPECT_EQ(cluster.View(kJob).last_checkpoint_step, 3) << "the last one waits for that of step 6";
  cluster.ReplaceStage(1);
  cluster.UntilRecovery(1);
  cluster.shard_seconds = 0;
  cluster.Until([](const JobView& view) { return view.phase == JobPhase::kRunning; });
  EXPECT_EQ(cluster.View(kJob).step, 3u);
  cluster.ExpectGoldenEnd();
  EXPECT_THAT(cluster.Saved(), Not(Contains(HasSubstr(".tmp"))));
}

TEST(BesideTest, AFullDiskIsToldOfWithTheStepOfTheCheckpoint) {
  TestCluster cluster(2);
  cluster.shard_seconds = kShardSeconds;
  cluster.Start().UntilSaved(3).files().SetCapacity(100);
  cluster.UntilStep(7);
  cluster.Until([](const JobView& view) { return view.phase == JobPhase::kRecovering; });
  const std::vector<const JobRecord*> records = CheckpointRecords(cluster);
  ASSERT_GE(records.size(), 2u);
  EXPECT_EQ(records[1]->step, 6u);
  EXPECT_THAT(records[1]->message,
              AllOf(HasSubstr("checkpoint at step 6"), HasSubstr("RESOURCE_EXHAUSTED")));
  cluster.files().SetCapacity(std::numeric_limits<int64_t>::max());
  cluster.ExpectGoldenEnd("with room again");
}

// Its bytes arrive for hours, and the steps go on for as long.
TEST(BesideTest, ASlowShardIsNotAStuckOne) {
  constexpr double kLong = 2000;
  JobSpec spec = SmallJob(2);
  spec.checkpoint.every_steps = 6;
  TestCluster cluster(2);
  cluster.Start(spec).UntilStep(6);
  cluster.step_seconds = 30;
  cluster.shard_seconds = kLong;
  cluster.Digest(kJob, 10 * kLong);
  cluster.ExpectGoldenEnd();
  EXPECT_GT(cluster.now(), kLong);
  EXPECT_EQ(cluster.View(kJob).recoveries, 0u);
}

// Heartbeats and steps go on, and no byte of the shard is written.
TEST(BesideTest, AStuckShardIsNamedWithItsCheckpointWhileStepsGoOn) {
  TestCluster cluster(2);
  cluster.shards_stuck = true;
  cluster.Start().UntilStep(3);
  cluster.step_seconds = 50;
  cluster.UntilRecovery(1);
  EXPECT_THAT(cluster.Message(),
              AllOf(HasSubstr("no piece of a shard written for 12"), HasSubstr("job small-1"),
                    HasSubstr("checkpoint of step 3, write_shards"), HasSubstr("stage 0 (stage-"),
                    HasSubstr("stage 1 (stage-")));
  EXPECT_GT(cluster.step_of(kJob), 3u);
  cluster.shards_stuck = false;
  cluster.step_seconds = SimulatedCluster::kStepSeconds;
  cluster.ExpectGoldenEnd();
}

}  // namespace
}  // namespace stagecoach
