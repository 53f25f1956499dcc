// Symptom: a backup of the journal that was restored while stages ran failed a job for ever. Cause:
// a load that was refused for its coordinator's old term counted as a fault of the job. What else a
// job is patient with: testdata/patience.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(RestoredJournalTest, ACoordinatorWhoseJournalWentBackRaisesItsTermAboveWhatStagesKnow) {
  for (const int starts : {1, 2, 5}) {  // since the backup
    TestCluster cluster(2);
    cluster.Start().UntilStep(1).CrashCoordinator();
    const MemoryDisk::Copy backup = cluster.disk().Files();
    for (int start = 0; start < starts; ++start) {
      cluster.StartCoordinator();
      cluster.UntilPhase(JobPhase::kRunning).CrashCoordinator();
    }
    cluster.disk().Restore(backup);
    EXPECT_EQ(cluster.disk().Files(), backup);
    cluster.StartCoordinator();
    cluster.Until([](const JobView& view) { return IsTerminal(view.phase); });
    EXPECT_EQ(cluster.Phase(), JobPhase::kSucceeded) << starts << ": " << cluster.Message();
    EXPECT_EQ(cluster.View(kJob).weights_digest, Golden().outcome.digest);
    EXPECT_LT(cluster.now(), 60) << "seconds of a cluster that trains the job in one";
  }
}

// A stage of two, idle, that tells of the newest term it has met.
class MetTermTest : public ::testing::Test {
 protected:
  MetTermTest() { heartbeat_.name = "stage-0"; }
  // The coordinator's, as it answers this heartbeat.
  uint64_t Term(uint64_t met) {
    EXPECT_TRUE(cluster_.RunUntil([&] { return cluster_.loop().ListStages().size() == 2; }));
    heartbeat_.incarnation = cluster_.stage(0).incarnation;
    heartbeat_.newest_term = met;
    return cluster_.loop().RenewLease(heartbeat_, {cluster_.now(), 0}).value().term;
  }

  StageHeartbeat heartbeat_;
  TestCluster cluster_{2};
};

TEST_F(MetTermTest, AbsurdTermsMoveNobody) {
  const uint64_t first = Term(~uint64_t{0});
  EXPECT_LT(first, uint64_t{1} << 40);
  EXPECT_EQ(Term(first + 40), first + 41);
  EXPECT_EQ(Term(first + 41), first + 41) << "its own";
  cluster_.RestartCoordinator();
  EXPECT_EQ(Term(first + 41), first + 42) << "it was on disk";
}

// Symptom: the stage that had told of the term was gone when there was room again, and a
// coordinator without jobs said for ever that its journal could not be written.
TEST_F(MetTermTest, ATermThatCouldNotBeWrittenIsWrittenOnceThereIsRoom) {
  const uint64_t first = Term(0);
  cluster_.disk().Set(MemoryDisk::State::kFull);
  EXPECT_EQ(Term(first + 40), first);
  cluster_.Wait(3);  // it does not say so again
  EXPECT_EQ(Term(0), first);
  cluster_.disk().Set(MemoryDisk::State::kGood);
  EXPECT_TRUE(cluster_.RunUntil([&] { return Term(0) == first + 41; }, 3));
}

// Symptom: somebody removed the lock file, a second coordinator started, and the first trained
// 2,900 steps that it could not save.
TEST(LostFolderTest, ACoordinatorWithoutItsLockSaysSoOnceAndWritesNothingMore) {
  TestCluster cluster(2);
  cluster.Start().UntilStep(4);
  const size_t records = cluster.Records(kJob).size();
  cluster.folder_error = absl::FailedPreconditionError("the lock was removed");
  cluster.Wait(10);
  ASSERT_THAT(cluster.folder_lost, SizeIs(1));
  EXPECT_THAT(cluster.folder_lost[0].message(), HasSubstr("the lock was removed"));
  EXPECT_EQ(cluster.Records(kJob).size(), records);
  const absl::Status refused = cluster.Submit("b", SmallJob(2)).status();
  EXPECT_THAT(refused.message(), HasSubstr("the lock was removed"));
}

TEST(LostFolderTest, AnIdleCoordinatorNoticesToo) {
  TestCluster cluster(1);
  cluster.folder_error = absl::FailedPreconditionError("the lock was removed");
  EXPECT_TRUE(cluster.RunUntil([&] { return !cluster.folder_lost.empty(); }, 5));
}

}  // namespace
}  // namespace stagecoach
