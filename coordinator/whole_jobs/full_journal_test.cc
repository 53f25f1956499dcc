// Symptom: with a full disk under the journal, jobs trained on and ended, but `watch` and `local`
// fell silent for good, `list` showed an end that the next coordinator knew nothing of, and
// `cancel` promised one that a restart took back. Cause: a failed write was only tried again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/status_is.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One watcher and what it was told.
struct Told {
  std::vector<JobRecord> records;
  std::optional<absl::Status> ended;
  void Watch(TestCluster& cluster, uint64_t watch_id) {
    cluster.loop().Watch(
        watch_id, kJob, 0,
        [this](const JobRecord& record) {
          records.push_back(record);
          return true;
        },
        [this](const absl::Status& status) { ended = status; });
  }
};

class FullJournalTest : public WholeJobsTest {
 protected:
  void RunUntilFull(uint64_t step, const JobSpec& spec = SmallJob(2)) {
    if (cluster_ == nullptr) Begin();
    cluster_->Start(spec);
    told_.Watch(*cluster_, 1000);
    cluster_->UntilStep(step);
    SetFull(true);
  }
  // Training goes on to its end: in memory the job has none of its stages any more.
  void RunUntilIdle(double seconds = 1000) {
    EXPECT_TRUE(cluster_->RunUntil(
        [&] {
          const std::vector<StageView> stages = cluster_->loop().ListStages();
          return std::ranges::all_of(
              stages, [](const StageView& s) { return s.state == StageState::kReady; });
        },
        seconds));
  }
  void MakeRoom(JobPhase phase) {
    SetFull(false);
    cluster_->Until([&](const JobView& view) { return view.phase == phase; }, 2);
  }
  void RestartWithRoom() {
    cluster_->CrashCoordinator();
    SetFull(false);
    cluster_->StartCoordinator();
  }
  void SetFull(bool full) {
    cluster_->disk().Set(full ? MemoryDisk::State::kFull : MemoryDisk::State::kGood);
  }
  auto SaysWhatAndWhy() {
    return AllOf(HasSubstr(absl::StrCat("journal ", cluster_->journal_path(), ": ")),
                 HasSubstr("is full"), HasSubstr("make room on its disk"),
                 HasSubstr("On disk the job is running at step "));
  }

  Told told_, late_;
};

TEST_F(FullJournalTest, WatchersAreToldWithinSeconds) {
  RunUntilFull(4);
  ASSERT_TRUE(cluster_->RunUntil([&] { return told_.ended.has_value(); }, 4));
  EXPECT_TRUE(absl::IsFailedPrecondition(*told_.ended)) << *told_.ended;
  EXPECT_THAT(told_.ended->message(), SaysWhatAndWhy());
  late_.Watch(*cluster_, 1001);
  EXPECT_EQ(late_.records.size(), told_.records.size()) << "what is on disk, and no more";
  EXPECT_TRUE(late_.ended.has_value() && absl::IsFailedPrecondition(*late_.ended));
}

TEST_F(FullJournalTest, NothingIsToldThatTheNextCoordinatorWouldTakeBack) {
  RunUntilFull(4);
  RunUntilIdle(20);
  const JobView view = cluster_->View(kJob);
  EXPECT_EQ(view.phase, JobPhase::kRunning) << "as on disk";
  EXPECT_THAT(view.message, AllOf(SaysWhatAndWhy(), HasSubstr("in memory it is succeeded")));
  EXPECT_EQ(view.weights_digest, "");
  EXPECT_EQ(cluster_->loop().List().jobs[0]->phase, JobPhase::kRunning);
  RestartWithRoom();
  EXPECT_EQ(cluster_->Digest(), Golden().outcome.digest);
}

TEST_F(FullJournalTest, ACancelThatIsNotOnDiskIsNotPromised) {
  RunUntilFull(4);
  EXPECT_THAT(cluster_->Cancel(kJob),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(SaysWhatAndWhy(), HasSubstr("in memory it is cancelled"))));
  EXPECT_EQ(cluster_->Phase(), JobPhase::kRunning);
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster_->Cancel(kJob))) << "asked again";
  MakeRoom(JobPhase::kCancelled);
  EXPECT_TRUE(cluster_->Cancel(kJob).ok());
}

// The log said "succeeded" where `list` said RUNNING, and the next coordinator ran the steps again.
TEST_F(FullJournalTest, WithRoomAgainEverythingIsWrittenAndToldAndTheLogHearsOfItThen) {
  RunUntilFull(4);
  RunUntilIdle(20);
  EXPECT_LE(cluster_->step_of(kJob), 4u);
  EXPECT_FALSE(cluster_->logged_end(kJob));
  MakeRoom(JobPhase::kSucceeded);
  EXPECT_TRUE(cluster_->logged_end(kJob));
  EXPECT_EQ(cluster_->step_of(kJob), 7u);
  EXPECT_EQ(cluster_->View(kJob).weights_digest, Golden().outcome.digest);
  late_.Watch(*cluster_, 1001);
  ASSERT_TRUE(cluster_->RunUntil([&] { return late_.ended.has_value(); }, 2));
  EXPECT_TRUE(late_.ended->ok()) << *late_.ended;
  EXPECT_EQ(late_.records.back().kind, JobRecord::Kind::kFinished);
  for (size_t i = 0; i < late_.records.size(); ++i) EXPECT_EQ(late_.records[i].number, i + 1);
}

TEST_F(FullJournalTest, AHiccupEndsNoWatch) {
  RunUntilFull(4);
  cluster_->Wait(1);
  SetFull(false);
  ASSERT_TRUE(cluster_->RunUntil([&] { return told_.ended.has_value(); }));
  EXPECT_TRUE(told_.ended->ok()) << *told_.ended;
  EXPECT_EQ(told_.records.back().kind, JobRecord::Kind::kFinished);
}

// Symptom: the evaluation that ended a job by training.until was not on disk when the coordinator
// ended, and the next one went on from the checkpoint behind it, to other weights. Found by the
// simulator.
TEST_F(FullJournalTest, AnEndThatAnEvaluationBroughtIsFoundAgain) {
  JobSpec spec = SmallJob(2);
  spec.training.until.loss = 1e9;  // with the first one, at step 3 of 7
  const std::string undisturbed = Begin().Start(spec, "undisturbed").Digest("undisturbed");
  ASSERT_EQ(cluster_->View("undisturbed").step, 3u);
  RunUntilFull(2, spec);
  RunUntilIdle(20);
  RestartWithRoom();
  EXPECT_EQ(cluster_->Digest(), undisturbed);
  EXPECT_EQ(cluster_->View(kJob).step, 3u);
}

// A held job was cancelled in memory only, shown as held still, and a resume was answered with OK
// though the job stayed cancelled.
TEST_F(FullJournalTest, AResumeAfterACancelThatIsNotOnDiskIsRefused) {
  options_.hold_jobs = true;
  Begin().Start().UntilStep(4).RestartCoordinator();
  ASSERT_EQ(cluster_->Phase(), JobPhase::kHeld);
  SetFull(true);
  ASSERT_TRUE(absl::IsFailedPrecondition(cluster_->Cancel(kJob)));
  SetFull(false);  // it is written with the next try, within a second
  EXPECT_THAT(
      cluster_->loop().Resume(kJob, 0).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in memory it is cancelled")));
  MakeRoom(JobPhase::kCancelled);
}

// The next coordinator takes the job up again, so what it begins with must be there.
TEST_F(FullJournalTest, AnEndThatIsNotOnDiskReleasesNoCheckpoint) {
  JobSpec first = SmallJob(2);
  first.training.steps = 30;
  first.checkpoint.keep = 1;
  Begin(4).Start(first, "first").UntilSaved(3, "first");
  JobSpec second = first;
  second.resume.job = "first";
  second.checkpoint.every_steps = 0;
  RunUntilFull(5, second);
  ASSERT_TRUE(absl::IsFailedPrecondition(cluster_->Cancel(kJob)));
  EXPECT_THAT(cluster_->UntilSaved(15, "first").Saved("first"), Contains("step-000000000003"));
  RestartWithRoom();
  cluster_->Digest();
  cluster_->Digest("first");
}

// A night of millisecond steps on a full disk filled the coordinator's memory.
TEST_F(FullJournalTest, OfManyUnwrittenStepsTheOldestAreDroppedAndCounted) {
  options_.max_unwritten_steps = 50;
  JobSpec spec = SmallJob(2);
  const int all_steps = spec.training.steps = kSanitized ? 120 : 300;
  RunUntilFull(4, spec);
  RunUntilIdle();
  MakeRoom(JobPhase::kSucceeded);
  late_.Watch(*cluster_, 1001);
  ASSERT_TRUE(cluster_->RunUntil([&] { return late_.ended.has_value(); }, 2));
  std::map<JobRecord::Kind, int> kinds;
  std::vector<std::string> lines;
  uint64_t number = 0, newest_step = 0;
  for (const JobRecord& record : late_.records) {
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
  EXPECT_THAT(lines, ElementsAre(HasSubstr(absl::StrCat("the records of ", all_steps - steps,
                                                        " steps up to step "))));
}

}  // namespace
}  // namespace stagecoach
