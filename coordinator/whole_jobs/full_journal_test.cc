// Symptom: with a full disk under the journal, jobs trained on and ended, but `watch` and `local` fell
// silent for good, `list` showed an end that the next coordinator knew nothing of, and `cancel`
// promised one that a restart took back. Cause: a failed write was only tried again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "coordinator/journal/slow_disk_testing.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One watcher and what it was told.
struct Told {
  std::vector<JobRecord> records;
  std::optional<absl::Status> ended;
  void Watch(SimulatedCluster& cluster, uint64_t watch_id, uint64_t after = 0) {
    cluster.loop().Watch(
        watch_id, "a", after,
        [this](const JobRecord& record) {
          records.push_back(record);
          return true;
        },
        [this](const absl::Status& status) { ended = status; });
  }
};

std::string UndisturbedDigest() {
  SimulatedCluster cluster(2);
  EXPECT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  EXPECT_TRUE(cluster.RunToEnd("a"));
  return cluster.View("a").weights_digest;
}

class FullJournalTest : public ::testing::Test {
 protected:
  void RunUntilFull(uint64_t step) {
    ASSERT_TRUE(cluster_.Submit("a", SmallJob(2)).ok());
    told_.Watch(cluster_, 1000);
    ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.View("a").step == step; }));
    disk_.full = true;
  }
  // Of its stages: in memory the job has ended.
  bool Idle() {
    for (const StageView& stage : cluster_.loop().ListStages()) {
      if (stage.state != StageState::kReady) return false;
    }
    return true;
  }
  auto SaysWhatAndWhy() {
    return AllOf(HasSubstr(absl::StrCat("journal ", cluster_.journal_path(), ": ")),
                 HasSubstr("is full"), HasSubstr("make room on its disk"),
                 HasSubstr("On disk the job is running at step "));
  }

  SlowDisk disk_;
  SimulatedCluster cluster_{2};
  Told told_;
};

TEST_F(FullJournalTest, WatchersAreToldWithinSeconds) {
  RunUntilFull(4);
  ASSERT_TRUE(cluster_.RunUntil([&] { return told_.ended.has_value(); }, 4));
  EXPECT_TRUE(absl::IsFailedPrecondition(*told_.ended)) << *told_.ended;
  EXPECT_THAT(told_.ended->message(), SaysWhatAndWhy());
  Told late;
  late.Watch(cluster_, 1001);
  EXPECT_EQ(late.records.size(), told_.records.size()) << "what is on disk, and no more";
  EXPECT_TRUE(late.ended.has_value() && absl::IsFailedPrecondition(*late.ended));
}

TEST_F(FullJournalTest, NothingIsToldThatTheNextCoordinatorWouldTakeBack) {
  RunUntilFull(4);
  ASSERT_TRUE(cluster_.RunUntil([&] { return Idle(); }, 20)) << "training goes on to its end";
  const JobView view = cluster_.View("a");
  EXPECT_EQ(view.phase, JobPhase::kRunning) << "as on disk";
  EXPECT_THAT(view.message, AllOf(SaysWhatAndWhy(), HasSubstr("in memory it is succeeded")));
  EXPECT_EQ(view.weights_digest, "");
  EXPECT_EQ(cluster_.loop().List().jobs[0]->phase, JobPhase::kRunning);
  cluster_.CrashCoordinator();
  disk_.full = false;
  cluster_.StartCoordinator();
  ASSERT_TRUE(cluster_.RunToEnd("a"));
  EXPECT_EQ(cluster_.View("a").phase, JobPhase::kSucceeded) << cluster_.View("a").message;
  EXPECT_EQ(cluster_.View("a").weights_digest, UndisturbedDigest());
}

TEST_F(FullJournalTest, ACancelThatIsNotOnDiskIsNotPromised) {
  RunUntilFull(4);
  const absl::Status status = cluster_.Cancel("a");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(SaysWhatAndWhy(), HasSubstr("in memory it is cancelled")));
  EXPECT_EQ(cluster_.View("a").phase, JobPhase::kRunning);
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster_.Cancel("a"))) << "asked again";
  disk_.full = false;
  ASSERT_TRUE(
      cluster_.RunUntil([&] { return cluster_.View("a").phase == JobPhase::kCancelled; }, 2));
  EXPECT_TRUE(cluster_.Cancel("a").ok());
}

// The log said "succeeded" where `list` said RUNNING, and the next coordinator ran the steps again.
TEST_F(FullJournalTest, TheLogHearsOfARecordOnceItIsOnDisk) {
  RunUntilFull(4);
  ASSERT_TRUE(cluster_.RunUntil([&] { return Idle(); }, 20));
  EXPECT_LE(cluster_.step_of("a"), 4u);
  EXPECT_FALSE(cluster_.logged_end("a"));
  disk_.full = false;
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.logged_end("a"); }, 2));
  EXPECT_EQ(cluster_.step_of("a"), 7u);
}

// Symptom: the evaluation that ended a job by training.until was not on disk when the coordinator ended, and the next one
// went on from the checkpoint behind it, to other weights. Found by the simulator.
TEST(FullJournalUntilTest, AnEndThatAnEvaluationBroughtIsFoundAgain) {
  JobSpec spec = SmallJob(2);
  spec.training.until.loss = 1e9;  // with the first one, at step 3 of 7
  std::string undisturbed;
  {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit("a", spec).ok());
    ASSERT_TRUE(cluster.RunToEnd("a"));
    ASSERT_EQ(cluster.View("a").step, 3u);
    undisturbed = cluster.View("a").weights_digest;
  }
  SlowDisk disk;
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", spec).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 2; }));
  disk.full = true;
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return cluster.loop().ListStages()[0].state == StageState::kReady; }, 20));
  cluster.CrashCoordinator();
  disk.full = false;
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded) << cluster.View("a").message;
  EXPECT_EQ(cluster.View("a").step, 3u);
  EXPECT_EQ(cluster.View("a").weights_digest, undisturbed);
}

// A held job was cancelled in memory only, shown as held still, and a resume was answered with OK
// though the job stayed cancelled.
TEST(FullJournalHoldTest, AResumeAfterACancelThatIsNotOnDiskIsRefused) {
  SlowDisk disk;
  JobManagerOptions holding;
  holding.hold_jobs = true;
  SimulatedCluster cluster(2, holding);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 4; }));
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  ASSERT_EQ(cluster.View("a").phase, JobPhase::kHeld);
  disk.full = true;
  ASSERT_TRUE(absl::IsFailedPrecondition(cluster.Cancel("a")));
  disk.full = false;  // it is written with the next try, within a second
  const absl::Status resumed = cluster.loop().Resume("a", 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(resumed)) << resumed;
  EXPECT_THAT(resumed.message(), HasSubstr("in memory it is cancelled"));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").phase == JobPhase::kCancelled; }, 2));
}

// The next coordinator takes the job up again, so what it begins with must be there.
TEST(FullJournalPinTest, AnEndThatIsNotOnDiskReleasesNoCheckpoint) {
  SlowDisk disk;
  SimulatedCluster cluster(4);
  JobSpec first = SmallJob(2);
  first.training.steps = 30;
  first.checkpoint.keep = 1;
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("first").last_checkpoint_step == 3; }));
  JobSpec second = first;
  second.resume_job = "first";
  second.checkpoint.every_steps = 0;
  ASSERT_TRUE(cluster.Submit("second", second).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("second").step == 5; }));
  disk.full = true;
  ASSERT_TRUE(absl::IsFailedPrecondition(cluster.Cancel("second")));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("first").last_checkpoint_step == 15; }));
  EXPECT_THAT(cluster.files().List("/checkpoints/first").value(),
              ::testing::Contains("step-000000000003"));
  cluster.CrashCoordinator();
  disk.full = false;
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.RunToEnd("second"));
  EXPECT_EQ(cluster.View("second").phase, JobPhase::kSucceeded) << cluster.View("second").message;
  ASSERT_TRUE(cluster.RunToEnd("first"));
}

// A night of millisecond steps on a full disk filled the coordinator's memory.
TEST(FullJournalMemoryTest, OfManyUnwrittenStepsTheOldestAreDroppedAndCounted) {
  SlowDisk disk;
  JobManagerOptions options;
  options.max_unwritten_steps = 50;
  SimulatedCluster cluster(2, options);
  JobSpec spec = SmallJob(2);
  const int all_steps = kSanitized ? 120 : 300;
  spec.training.steps = all_steps;
  ASSERT_TRUE(cluster.Submit("a", spec).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 4; }));
  disk.full = true;
  ASSERT_TRUE(cluster.RunUntil([&] {
    return cluster.loop().ListStages()[0].state == StageState::kReady;
  })) << "training goes on to its end";
  disk.full = false;
  ASSERT_TRUE(cluster.RunUntil([&] { return IsTerminal(cluster.View("a").phase); }, 2));
  Told told;
  told.Watch(cluster, 1000);
  ASSERT_TRUE(cluster.RunUntil([&] { return told.ended.has_value(); }, 2));
  std::map<JobRecord::Kind, int> kinds;
  std::vector<std::string> lines;
  uint64_t number = 0, newest_step = 0;
  for (const JobRecord& record : told.records) {
    EXPECT_GT(record.number, number);
    number = record.number;
    ++kinds[record.kind];
    if (record.kind == JobRecord::Kind::kStep) newest_step = record.step;
    if (record.message.starts_with("the records of ")) lines.push_back(record.message);
  }
  const int steps = kinds[JobRecord::Kind::kStep];
  EXPECT_GE(steps, 45);
  EXPECT_LE(steps, 50 + 5) << "with those of before";
  EXPECT_EQ(newest_step, static_cast<uint64_t>(all_steps));
  EXPECT_EQ(kinds[JobRecord::Kind::kEvaluation], all_steps / 3) << "other kinds stay";
  EXPECT_THAT(lines, ::testing::ElementsAre(HasSubstr(absl::StrCat(
                         "the records of ", all_steps - steps, " steps up to step "))));
}

TEST_F(FullJournalTest, WithRoomAgainEverythingIsWrittenAndTold) {
  RunUntilFull(4);
  ASSERT_TRUE(cluster_.RunUntil([&] { return Idle(); }, 20));
  disk_.full = false;
  ASSERT_TRUE(
      cluster_.RunUntil([&] { return cluster_.View("a").phase == JobPhase::kSucceeded; }, 2));
  EXPECT_EQ(cluster_.View("a").weights_digest, UndisturbedDigest());
  Told again;
  again.Watch(cluster_, 1001);
  ASSERT_TRUE(cluster_.RunUntil([&] { return again.ended.has_value(); }, 2));
  EXPECT_TRUE(again.ended->ok()) << *again.ended;
  EXPECT_EQ(again.records.back().kind, JobRecord::Kind::kFinished);
  for (size_t i = 0; i < again.records.size(); ++i) EXPECT_EQ(again.records[i].number, i + 1);
}

TEST_F(FullJournalTest, AHiccupEndsNoWatch) {
  RunUntilFull(4);
  const double full = cluster_.now();
  cluster_.RunUntil([&] { return cluster_.now() > full + 1; });
  disk_.full = false;
  ASSERT_TRUE(cluster_.RunUntil([&] { return told_.ended.has_value(); }));
  EXPECT_TRUE(told_.ended->ok()) << *told_.ended;
  EXPECT_EQ(told_.records.back().kind, JobRecord::Kind::kFinished);
}

}  // namespace
}  // namespace stagecoach
