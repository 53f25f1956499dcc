// Symptoms: three kills within one long step, 31 connections reset in 15 seconds, one flipped bit in a frame, or a backup
// of the journal that was restored while stages ran, failed a job for ever. Cause: every recovery of a step counted as one
// of its failures, and a load that was refused for its coordinator's old term as a fault of the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/journal/slow_disk_testing.h"
#include "coordinator/testing/simulated_cluster.h"
#include "coordinator/whole_jobs/golden_job_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int kNever = 1'000'000;

// From now on so many runs of this step answer `fault`.
void FailRuns(SimulatedCluster& cluster, uint64_t step, int times, const absl::Status& fault) {
  cluster.run_fault = [step, left = times, fault](int stage, const RunCommand& command) mutable {
    if (stage != 1 || command.fence.step != step || left == 0) return absl::OkStatus();
    --left;
    return fault;
  };
}

TEST(PatienceTest, KillsWithinOneStepDoNotEndTheJob) {
  SimulatedCluster cluster(2);
  cluster.step_seconds = 60;
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).step == 4; }));
  for (int kill = 0; kill < 8; ++kill) {
    ASSERT_TRUE(cluster.RunUntil([&] {
      const JobView view = cluster.View(kJob);
      return view.phase == JobPhase::kRunning && view.recoveries == uint64_t(kill);
    })) << cluster.View(kJob).message;
    cluster.KillStage(kill % 2);
    cluster.RestartStage(kill % 2);
  }
  cluster.step_seconds = SimulatedCluster::kStepSeconds;
  ExpectGoldenEnd(cluster, "eight kills");
}

TEST(PatienceTest, ConnectionsThatBreakAgainAndAgainAreWaitedOut) {
  for (const absl::Status& fault :
       {absl::UnavailableError("reset"), absl::AbortedError("a link broke"),
        absl::DataLossError("a frame's checksum"), absl::DeadlineExceededError("no message"),
        absl::CancelledError("reset")}) {
    SimulatedCluster cluster(2);
    FailRuns(cluster, 4, 7, fault);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    ExpectGoldenEnd(cluster, fault.ToString());
    EXPECT_EQ(cluster.View(kJob).recoveries, 7u);
  }
}

TEST(PatienceTest, AttemptsThatFailBecomeFewer) {
  SimulatedCluster cluster(2);
  FailRuns(cluster, 0, kNever, absl::UnavailableError("reset"));
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  EXPECT_FALSE(cluster.RunToEnd(kJob, 600)) << cluster.View(kJob).message;
  // 0, 0, 1, 2, 4, 8, 16, 32 s, and then every minute.
  EXPECT_NEAR(static_cast<double>(cluster.View(kJob).recoveries), 8 + (600 - 63) / 60, 3);
  EXPECT_THAT(cluster.View(kJob).message, AllOf(HasSubstr("recoveries without a new step"),
                                                HasSubstr("in 60 s"), HasSubstr("reset")));
  cluster.run_fault = nullptr;
  ExpectGoldenEnd(cluster, "at last");
}

TEST(PatienceTest, AStageThatFailsForItsOwnReasonIsLeftForAnotherOne) {
  SimulatedCluster cluster(3);
  cluster.run_fault = [&](int stage, const RunCommand& command) {
    const bool bad = command.fence.step >= 2 && cluster.stage(1).loaded && stage == 1 &&
                     cluster.stage(1).command.fence.generation == command.fence.generation;
    return bad ? absl::InternalError("this machine computes nothing") : absl::OkStatus();
  };
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ExpectGoldenEnd(cluster, "a bad machine and a spare one");
  EXPECT_EQ(cluster.View(kJob).recoveries, 1u);
}

TEST(PatienceTest, WithoutAnotherOneAStageIsAskedTwiceAsOften) {
  SimulatedCluster cluster(2);
  FailRuns(cluster, 3, kNever, absl::InternalError("kernel crashed"));
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  EXPECT_THAT(cluster.View(kJob).message, HasSubstr("step 3 failed 6 times, on stage-1; last"));
}

// The coordinator's lease of a stage ends, and the stage computes on and knows nothing of it: a partition one way.
TEST(PatienceTest, APartitionIsWaitedOut) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  for (int partition = 0; partition < 5; ++partition) {
    ASSERT_TRUE(cluster.RunUntil([&] {
      return cluster.View(kJob).phase == JobPhase::kRunning && cluster.View(kJob).step >= 2;
    }));
    cluster.StopStage(1);
    const double end = cluster.now() + 5.6;
    cluster.RunUntil([&] { return cluster.now() >= end; });
    cluster.ContinueStage(1);
  }
  ExpectGoldenEnd(cluster, "five partitions");
  EXPECT_GE(cluster.View(kJob).recoveries, 5u);
}

// Symptom: the folder of checkpoints was not mounted for a moment, and the job started over from its seed.
TEST(PatienceTest, StorageThatIsAwayCostsTimeOnly) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).last_checkpoint_step == 3; }));
  const std::string folder = absl::StrCat("/checkpoints/", kJob);
  ASSERT_TRUE(cluster.files().Rename(folder, "/elsewhere").ok());
  cluster.KillStage(0);
  cluster.RestartStage(0);
  const double end = cluster.now() + 20;
  cluster.RunUntil([&] { return cluster.now() >= end; });
  EXPECT_THAT(cluster.View(kJob).message, HasSubstr("is the storage mounted?"));
  ASSERT_TRUE(cluster.files().Rename("/elsewhere", folder).ok());
  ExpectGoldenEnd(cluster, "unmounted");
  std::vector<uint64_t> repeated;
  bool recovered = false;
  for (const JobRecord& record : cluster.Records(kJob)) {
    recovered = recovered || record.kind == JobRecord::Kind::kRecovery;
    if (recovered && record.kind == JobRecord::Kind::kStep) repeated.push_back(record.step);
  }
  ASSERT_FALSE(repeated.empty());
  EXPECT_EQ(repeated.front(), 4u) << "from the checkpoint on";
}

class RestoredJournalTest : public ::testing::Test {
 protected:
  static void Copy(const std::string& from, const std::string& to) {
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::remove(to + suffix);
      if (std::filesystem::exists(from + suffix)) std::filesystem::copy(from + suffix, to + suffix);
    }
    std::filesystem::remove(to + "-shm");
  }
};

TEST_F(RestoredJournalTest, ACoordinatorWhoseJournalWentBackRaisesItsTermAboveWhatStagesKnow) {
  for (const int starts : {1, 2, 5}) {  // since the backup
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).step == 1; }));
    const std::string backup = absl::StrCat(cluster.journal_path(), ".backup");
    cluster.CrashCoordinator();
    Copy(cluster.journal_path(), backup);
    for (int start = 0; start < starts; ++start) {
      cluster.StartCoordinator();
      ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).phase == JobPhase::kRunning; }));
      cluster.CrashCoordinator();
    }
    Copy(backup, cluster.journal_path());
    cluster.StartCoordinator();
    const auto ended = [&] { return IsTerminal(cluster.View(kJob).phase); };
    ASSERT_TRUE(cluster.RunUntil(ended)) << cluster.View(kJob).message;
    const JobView view = cluster.View(kJob);
    EXPECT_EQ(view.phase, JobPhase::kSucceeded) << starts << " starts: " << view.message;
    EXPECT_EQ(view.weights_digest, Golden().outcome.digest);
    EXPECT_LT(cluster.now(), 60) << "seconds of a cluster that trains the job in one";
    std::filesystem::remove(backup);
    std::filesystem::remove(backup + "-wal");
  }
}

TEST_F(RestoredJournalTest, AbsurdTermsMoveNobody) {
  SimulatedCluster cluster(2);
  StageHeartbeat heartbeat;
  heartbeat.name = "stage-0";
  heartbeat.incarnation = cluster.stage(0).incarnation;
  heartbeat.newest_term = ~uint64_t{0};
  const auto term = [&] {
    return cluster.loop().RenewLease(heartbeat, {cluster.now(), 0}).value().term;
  };
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.loop().ListStages().size() == 2; }));
  const uint64_t first = term();
  EXPECT_LT(first, uint64_t{1} << 40);
  heartbeat.newest_term = first + 40;
  EXPECT_EQ(term(), first + 41);
  heartbeat.newest_term = first + 41;
  EXPECT_EQ(term(), first + 41) << "its own";
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.loop().ListStages().size() == 2; }));
  EXPECT_EQ(term(), first + 42) << "it was on disk";
}

// Symptom: the stage that had told of the term was gone when there was room again, and a coordinator without jobs said for
// ever that its journal could not be written.
TEST_F(RestoredJournalTest, ATermThatCouldNotBeWrittenIsWrittenOnceThereIsRoom) {
  SlowDisk disk;
  SimulatedCluster cluster(2);
  StageHeartbeat heartbeat;
  heartbeat.name = "stage-0";
  heartbeat.incarnation = cluster.stage(0).incarnation;
  const auto term = [&] {
    return cluster.loop().RenewLease(heartbeat, {cluster.now(), 0}).value().term;
  };
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.loop().ListStages().size() == 2; }));
  const uint64_t first = term();
  disk.full = true;
  heartbeat.newest_term = first + 40;
  EXPECT_EQ(term(), first);
  heartbeat.newest_term = 0;  // it does not say so again
  cluster.RunUntil([] { return false; }, 3);
  EXPECT_EQ(term(), first);
  disk.full = false;
  EXPECT_TRUE(cluster.RunUntil([&] { return term() == first + 41; }, 3));
}

// Symptom: somebody removed the lock file, a second coordinator started, and the first trained 2,900 steps that it could
// not save.
TEST(LostFolderTest, ACoordinatorWithoutItsLockSaysSoOnceAndWritesNothingMore) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).step == 4; }));
  const size_t records = cluster.Records(kJob).size();
  cluster.folder_error = absl::FailedPreconditionError("the lock was removed");
  const double end = cluster.now() + 10;
  cluster.RunUntil([&] { return cluster.now() >= end; });
  ASSERT_THAT(cluster.folder_lost, SizeIs(1));
  EXPECT_THAT(cluster.folder_lost[0].message(), HasSubstr("the lock was removed"));
  EXPECT_EQ(cluster.Records(kJob).size(), records);
  const absl::Status refused = cluster.Submit("b", SmallJob(2)).status();
  EXPECT_THAT(refused.message(), HasSubstr("the lock was removed"));
}

TEST(LostFolderTest, AnIdleCoordinatorNoticesToo) {
  SimulatedCluster cluster(1);
  cluster.folder_error = absl::FailedPreconditionError("the lock was removed");
  EXPECT_TRUE(cluster.RunUntil([&] { return !cluster.folder_lost.empty(); }, 5));
}

}  // namespace
}  // namespace stagecoach
