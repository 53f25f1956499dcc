// What a load is at: shown to people while it lasts. Symptom: a job whose stages made tokens of a
// large text stood there for minutes without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class LoadingTest : public WholeJobsTest {
 protected:
  // A job whose stages load for 20 s, and a watcher of it.
  TestCluster& BeginLoading() {
    Begin().load_seconds = 20;
    cluster_->Start();
    cluster_->loop().Watch(
        900, kJob, 0, [](const JobRecord&) { return true; }, [](const absl::Status&) {},
        [this](const JobRecord& shown) {
          shown_.push_back(shown);
          times_.push_back(cluster_->now());
        });
    return cluster_->UntilPhase(JobPhase::kLoading);
  }
  std::vector<JobRecord> shown_;
  std::vector<double> times_;
};

TEST_F(LoadingTest, IsShownWhileItLastsAndStaysInNoHistory) {
  TestCluster& cluster = BeginLoading();
  cluster.Wait(2);
  EXPECT_THAT(shown_, IsEmpty()) << "no stage says anything";
  EXPECT_EQ(cluster.Message(), "");
  cluster.stage(0).loading = "encodes de.txt: 41 %";
  cluster.Wait(2);
  ASSERT_EQ(shown_.size(), 1u) << "the same is not shown again so soon";
  const JobRecord& shown = shown_.front();
  EXPECT_EQ(shown.number, 0u);
  EXPECT_EQ(shown.kind, JobRecord::Kind::kState);
  EXPECT_EQ(shown.phase, JobPhase::kLoading);
  EXPECT_EQ(shown.message, "stage 0 (stage-0): encodes de.txt: 41 %");
  EXPECT_GT(shown.unix_seconds, 0);
  EXPECT_EQ(cluster.Message(), shown.message);

  cluster.stage(0).loading.clear();
  cluster.Wait(2);
  EXPECT_EQ(shown_.size(), 1u);
  EXPECT_EQ(cluster.Message(), "");
  cluster.stage(0).loading = "encodes en.txt: 7 %";
  cluster.UntilPhase(JobPhase::kRunning);
  const size_t before = shown_.size();
  EXPECT_GE(before, 3u) << "the same is shown again to who has missed it";
  for (size_t i = 1; i < before; ++i) {
    EXPECT_EQ(shown_[i].message, "stage 0 (stage-0): encodes en.txt: 7 %");
  }
  for (size_t i = 2; i < before; ++i) EXPECT_GE(times_[i] - times_[i - 1], 5);
  cluster.ExpectGoldenEnd();
  EXPECT_EQ(shown_.size(), before) << "it says so still, and the job trains";
  EXPECT_THAT(cluster.History(), Not(HasSubstr("encodes")));
}

TEST_F(LoadingTest, IsShownOnceASecondAtMostHoweverManyStagesSayIt) {
  TestCluster& cluster = BeginLoading();
  int said = 0;
  const double end = cluster.now() + 10;
  cluster.RunUntil([&] {
    for (const int k : {0, 1}) cluster.stage(k).loading = absl::StrCat("at ", ++said);
    return cluster.now() > end;
  });
  EXPECT_GE(shown_.size(), 5u);
  for (size_t i = 1; i < times_.size(); ++i) EXPECT_GE(times_[i] - times_[i - 1], 1);
}

// A stage may still be at the load of a job that was cancelled.
TEST_F(LoadingTest, OfAnotherJobIsNotShown) {
  TestCluster& cluster = BeginLoading();
  cluster.Wait(2);  // the load has reached the stage
  cluster.stage(0).loading = "encodes secret.txt: 41 %";
  cluster.stage(0).loading_fence.job = "another";
  cluster.Wait(3);
  EXPECT_THAT(shown_, IsEmpty());
  EXPECT_EQ(cluster.Message(), "");
}

// What a process says of itself goes to terminals.
TEST_F(LoadingTest, IsShownAndNotObeyed) {
  TestCluster& cluster = BeginLoading();
  cluster.stage(0).loading = "encodes \x1b[2J: 1 %";
  cluster.Wait(2);
  EXPECT_THAT(shown_, Contains(Field(&JobRecord::message,
                                     AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))))));
}

// A stage that waits for a neighbour is not to blame; a load waits for none.
TEST_F(LoadingTest, AStageWhoseLoadStandsStillIsToBlame) {
  Begin().stage(1).load_hangs = true;
  cluster_->stage(1).loading = "encodes de.txt: 41 %";
  cluster_->Start().UntilRecovery(1);
  EXPECT_THAT(cluster_->Message(), HasSubstr("stage 1 (stage-1) says: encodes de.txt: 41 %"));
  EXPECT_THAT(cluster_->View(kJob).faults,
              Contains(AllOf(Field(&StageFaults::stage_name, "stage-1"),
                             Field(&StageFaults::reason, "deadline"))));
}

}  // namespace
}  // namespace stagecoach
