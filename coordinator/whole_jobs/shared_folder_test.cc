// Stages and coordinator whose folders of checkpoints are not one, and disks without room: whole jobs
// on a simulated cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSharedJob[] = "job";

std::vector<std::string> SharedStateFolders(SimulatedCluster& cluster) {
  return cluster.files()
      .List(absl::StrCat("/checkpoints/", kSharedJob))
      .value_or(std::vector<std::string>{});
}

// With the weights of a run that nothing befell.
void ExpectUndisturbedEnd(SimulatedCluster& cluster) {
  static const std::string digest = [] {
    SimulatedCluster undisturbed(2);
    EXPECT_TRUE(undisturbed.Submit(kSharedJob, SmallJob(2)).ok());
    EXPECT_TRUE(undisturbed.RunToEnd(kSharedJob));
    return undisturbed.View(kSharedJob).weights_digest;
  }();
  ASSERT_TRUE(cluster.RunToEnd(kSharedJob)) << cluster.View(kSharedJob).message;
  const JobView view = cluster.View(kSharedJob);
  EXPECT_EQ(view.phase, JobPhase::kSucceeded) << view.message;
  EXPECT_EQ(view.weights_digest, digest);
  EXPECT_THAT(cluster.violations, IsEmpty());
}

// Every checkpoint failed while training went on, and at the last step all of it was lost: a stage
// had a disk of its own where the others had the shared folder.
TEST(SharedFolderTest, AStageWithAFolderOfItsOwnFailsTheJobBeforeItsFirstStep) {
  SimulatedCluster cluster(2);
  FaultFileSystem own;
  cluster.stage(1).own_files = &own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kSharedJob, 5)) << "at once";
  const JobView view = cluster.View(kSharedJob);
  EXPECT_EQ(view.phase, JobPhase::kFailed);
  EXPECT_EQ(view.recoveries, 0u);
  EXPECT_EQ(view.step, 0u);
  EXPECT_THAT(view.message,
              AllOf(HasSubstr("stage 1 (stage-1): "), HasSubstr("NOT_FOUND"),
                    HasSubstr(absl::StrCat(" /checkpoints/", kSharedJob, "/.tmp-1-0-")),
                    HasSubstr("mount one shared folder at the coordinator's --checkpoint-dir")));
  ASSERT_TRUE(cluster.RunUntil([&] { return SharedStateFolders(cluster).empty(); }, 5))
      << "none is left";
}

TEST(SharedFolderTest, ADiskWithoutRoomForTwoCheckpointsFailsTheJobBeforeItsFirstStep) {
  SimulatedCluster cluster(2);
  cluster.files().SetCapacity(10000);  // one checkpoint has some 7000 bytes
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kSharedJob, 5));
  EXPECT_EQ(cluster.View(kSharedJob).recoveries, 0u);
  EXPECT_THAT(cluster.View(kSharedJob).message,
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("has 10000 free")));
  JobSpec last_only = SmallJob(2);
  last_only.checkpoint.every_steps = 0;
  ASSERT_TRUE(cluster.Submit("other", last_only).ok());
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.View("other").step > 0; }, 100))
      << "one is all it writes: " << cluster.View("other").message;
}

TEST(SharedFolderTest, ARecoveryGoesOnWithoutAStageThatDoesNotSeeTheFolder) {
  SimulatedCluster cluster(2);
  FaultFileSystem own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.AddStage(2);
  cluster.stage(2).own_files = &own;
  cluster.KillStage(1);
  ASSERT_TRUE(cluster.RunUntil([&] {
    return cluster.View(kSharedJob).message.find("without stage-2") != std::string::npos;
  })) << cluster.View(kSharedJob).message;
  EXPECT_EQ(cluster.View(kSharedJob).phase, JobPhase::kRecovering) << "it waits for another one";
  EXPECT_THAT(cluster.View(kSharedJob).message,
              HasSubstr("which did not see the folder of checkpoints"));
  cluster.AddStage(3);
  ExpectUndisturbedEnd(cluster);
  bool told = false;
  for (const JobRecord& record : cluster.Records(kSharedJob)) {
    told = told || record.message.find("stage 1 (stage-2): ") != std::string::npos;
  }
  EXPECT_TRUE(told);
}

TEST(SharedFolderTest, ARecoveryWithNothingButAStageThatDoesNotSeeTheFolderFailsNamingIt) {
  SimulatedCluster cluster(2);
  FaultFileSystem own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.AddStage(2);
  cluster.stage(2).own_files = &own;
  cluster.KillStage(1);
  ASSERT_TRUE(cluster.RunToEnd(kSharedJob, 60));
  EXPECT_THAT(cluster.View(kSharedJob).message,
              AllOf(HasSubstr("1 stage is missing"), HasSubstr("without stage-2"),
                    HasSubstr("mount it there and restart them, or start more stage servers")));
}

// A job whose stages had all lost the mount took them again and again, while others stood idle.
TEST(SharedFolderTest, StagesThatHaveAllLostTheFolderGiveWayToOthers) {
  SimulatedCluster cluster(2);
  FaultFileSystem own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.AddStage(2);
  cluster.AddStage(3);
  cluster.stage(0).own_files = cluster.stage(1).own_files = &own;
  cluster.RestartStage(1);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 6; }, 60))
      << cluster.View(kSharedJob).message;
  EXPECT_EQ(cluster.View(kSharedJob).stages[0].stage_name, "stage-2");
  EXPECT_EQ(cluster.View(kSharedJob).stages[1].stage_name, "stage-3");
  ExpectUndisturbedEnd(cluster);
}

// One good stage beside two that had lost the mount let each of the two be left aside for good, and the job failed after a minute,
// though both were mended by then; without the good one it went on.
TEST(SharedFolderTest, StagesThatWereLeftAsideAreTriedAgainWhenThereAreNoOthers) {
  SimulatedCluster cluster(3);
  FaultFileSystem own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.stage(0).own_files = cluster.stage(1).own_files = &own;
  cluster.RestartStage(1);
  const auto left_aside = [&] {
    const std::string message = cluster.View(kSharedJob).message;
    return absl::StrContains(message, "stage-0") && absl::StrContains(message, "stage-1") &&
           absl::StrContains(message, "waits for 2 stages");
  };
  ASSERT_TRUE(cluster.RunUntil(left_aside, 60)) << cluster.View(kSharedJob).message;
  cluster.stage(0).own_files = cluster.stage(1).own_files = nullptr;
  ExpectUndisturbedEnd(cluster);
}

// What the coordinator still sees comes back: with no other stages the job waits for it, with one stage as with two.
TEST(SharedFolderTest, StagesThatHaveAllLostTheFolderAreTriedUntilItIsBack) {
  for (const int stages : {1, 2}) {
    SimulatedCluster cluster(stages);
    FaultFileSystem own;
    ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(stages)).ok());
    cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
    for (int k = 0; k < stages; ++k) cluster.stage(k).own_files = &own;
    cluster.RestartStage(0);
    cluster.RunUntil([] { return false; }, 300);
    ASSERT_FALSE(IsTerminal(cluster.View(kSharedJob).phase)) << cluster.View(kSharedJob).message;
    for (int k = 0; k < stages; ++k) cluster.stage(k).own_files = nullptr;
    ASSERT_TRUE(cluster.RunToEnd(kSharedJob)) << cluster.View(kSharedJob).message;
    EXPECT_EQ(cluster.View(kSharedJob).phase, JobPhase::kSucceeded);
  }
}

// Stages that had lost the mount were left aside until they were restarted, though the one that might have seen it had said
// nothing: the job failed after a minute for want of others.
TEST(SharedFolderTest, AStageThatHangsProvesNothingAgainstThoseThatHaveLostTheFolder) {
  SimulatedCluster cluster(2);
  FaultFileSystem own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.stage(0).own_files = &own;
  cluster.RestartStage(1);
  cluster.stage(1).load_hangs = true;
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSharedJob).recoveries == 2; }))
      << cluster.View(kSharedJob).message;
  EXPECT_THAT(cluster.View(kSharedJob).message, HasSubstr("stage 0 (stage-0): "));
  cluster.stage(0).own_files = nullptr;
  cluster.stage(1).load_hangs = false;
  ExpectUndisturbedEnd(cluster);
}

// What the stages wrote is there, and it is the coordinator that cannot read it: the job left its stages, and what they had in
// memory, for others.
TEST(SharedFolderTest, WhatTheCoordinatorDoesNotFindIsNoFaultOfTheStages) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.AddStage(2);
  cluster.AddStage(3);
  cluster.RestartStage(1);
  const auto answered = [&] {  // the question and two answers
    const std::string job = absl::StrCat("/checkpoints/", kSharedJob);
    for (const std::string& name : SharedStateFolders(cluster)) {
      if (!absl::StartsWith(name, ".tmp-")) continue;
      const auto files = cluster.files().List(absl::StrCat(job, "/", name));
      if (files.ok() && files->size() == 3) return true;
    }
    return false;
  };
  ASSERT_TRUE(cluster.RunUntil(answered, 60));
  cluster.files().Inject({.from_then_on = true});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSharedJob).recoveries == 2; }, 60));
  EXPECT_THAT(cluster.View(kSharedJob).message, HasSubstr("cannot be read or written now"));
  cluster.files().ClearFault();
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 6; }, 60));
  EXPECT_EQ(cluster.View(kSharedJob).stages[0].stage_name, "stage-0");
  EXPECT_EQ(cluster.View(kSharedJob).stages[1].stage_name, "stage-1");
  ExpectUndisturbedEnd(cluster);
}

// A job of one stage told nobody, so the next job was given that stage, and failed.
TEST(SharedFolderTest, TheOnlyStageOfAJobIsPassedOverByOthersToo) {
  SimulatedCluster cluster(3);
  FaultFileSystem own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(1)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  ASSERT_EQ(cluster.View(kSharedJob).stages[0].stage_name, "stage-0");
  cluster.stage(0).own_files = &own;
  cluster.RestartStage(0);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 6; }, 60));
  EXPECT_EQ(cluster.View(kSharedJob).stages[0].stage_name, "stage-1");
  ASSERT_TRUE(cluster.Submit("other", SmallJob(1)).ok());
  ASSERT_TRUE(cluster.RunToEnd("other"));
  EXPECT_EQ(cluster.View("other").phase, JobPhase::kSucceeded) << cluster.View("other").message;
  ASSERT_TRUE(cluster.RunToEnd(kSharedJob));
  EXPECT_EQ(cluster.View(kSharedJob).phase, JobPhase::kSucceeded);
}

// A stage that one job had failed for was given to the next job, and the next, while others were free.
TEST(SharedFolderTest, AStageThatDoesNotSeeTheFolderIsPassedOverWhileOthersSuffice) {
  SimulatedCluster cluster(2);
  FaultFileSystem own;
  cluster.stage(1).own_files = &own;
  ASSERT_TRUE(cluster.Submit("first", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  ASSERT_EQ(cluster.View("first").phase, JobPhase::kFailed);

  cluster.AddStage(2);
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.Submit("waits", SmallJob(2)).ok());
  EXPECT_EQ(cluster.View("waits").message,
            "waits for 2 stages, 0 are ready, 3 are alive, without stage-1, which did not see the "
            "folder of checkpoints");
  ExpectUndisturbedEnd(cluster);
  std::string history;
  for (const JobRecord& record : cluster.Records(kSharedJob)) history += record.message;
  EXPECT_THAT(history, HasSubstr("without stage-1, which did not see the folder of checkpoints"));
  ASSERT_TRUE(cluster.RunToEnd("waits"));
  EXPECT_EQ(cluster.View("waits").phase, JobPhase::kSucceeded) << cluster.View("waits").message;

  ASSERT_TRUE(cluster.Submit("needs-all", SmallJob(3)).ok());
  ASSERT_TRUE(cluster.RunToEnd("needs-all"));
  EXPECT_THAT(cluster.View("needs-all").message, HasSubstr("stage 2 (stage-1): "));
  cluster.stage(1).own_files = nullptr;  // somebody mounts it
  ASSERT_TRUE(cluster.Submit("needs-all-2", SmallJob(3)).ok());
  ASSERT_TRUE(cluster.RunToEnd("needs-all-2"));
  EXPECT_EQ(cluster.View("needs-all-2").phase, JobPhase::kSucceeded);
  ASSERT_TRUE(cluster.Submit("last", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("last").stages.size() == 2; }));
  EXPECT_EQ(cluster.View("last").stages[1].stage_name, "stage-1") << "it is like the others again";
}

// A recovering job waited for a stage that another job kept, and failed, with a free one beside it that
// had been noted without the folder, and whose mount had been mended since.
TEST(SharedFolderTest, ARecoveryTakesAStageThatWasPassedOverWhenTheOthersWorkForOtherJobs) {
  SimulatedCluster cluster(4);
  FaultFileSystem own;
  cluster.stage(3).own_files = &own;
  ASSERT_TRUE(cluster.Submit("first", SmallJob(4)).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  ASSERT_EQ(cluster.View("first").phase, JobPhase::kFailed) << "stage-3 is noted";
  cluster.stage(3).own_files = nullptr;

  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  JobSpec long_one = SmallJob(1);
  long_one.training.steps = 1000;
  ASSERT_TRUE(cluster.Submit("long", long_one).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; }));
  ASSERT_EQ(cluster.View("long").stages.at(0).stage_name, "stage-2");
  cluster.KillStage(0);
  ExpectUndisturbedEnd(cluster);
  EXPECT_EQ(cluster.View("long").phase, JobPhase::kRunning) << "it kept its stage all the while";
}

// A coordinator that is upgraded first has stages that leave the new question unanswered: all of them
// counted as not seeing the folder.
TEST(SharedFolderTest, StagesOfAnOlderVersionAreNotTakenForThoseThatDoNotSeeTheFolder) {
  SimulatedCluster cluster(2);
  cluster.stage(0).old_version = cluster.stage(1).old_version = true;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.RestartStage(1);
  ExpectUndisturbedEnd(cluster);
}

// A network file system that fails for a moment must not cost a job its only stages.
TEST(SharedFolderTest, AFaultThatPassesDoesNotBanAStage) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.stage(0).folder_fault = absl::UnavailableError("stale file handle");
  cluster.RestartStage(1);
  ExpectUndisturbedEnd(cluster);
  EXPECT_EQ(cluster.View(kSharedJob).recoveries, 2u);
}

TEST(SharedFolderTest, ADiskThatTrainingHasFilledDoesNotKeepARecoveryFromGoingOn) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.files().SetCapacity(0);
  cluster.RestartStage(1);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 6; }, 30))
      << cluster.View(kSharedJob).message;
  cluster.files().SetCapacity(1 << 20);
  ExpectUndisturbedEnd(cluster);
}

// What fills a disk must not hide a stage that has a folder of its own.
TEST(SharedFolderTest, ARecoveryLooksAlsoWhereThereIsNoRoomForACheckpoint) {
  SimulatedCluster cluster(2);
  FaultFileSystem own;
  ASSERT_TRUE(cluster.Submit(kSharedJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kSharedJob).step == 5; });
  cluster.files().SetCapacity(1 << 20);
  const absl::StatusOr<int64_t> free = cluster.files().FreeBytes("/checkpoints");
  ASSERT_TRUE(free.ok()) << free.status();
  cluster.files().SetCapacity((1 << 20) - *free + 1000);  // for the question and its answers
  cluster.AddStage(2);
  cluster.stage(2).own_files = &own;
  cluster.KillStage(1);
  ASSERT_TRUE(cluster.RunUntil([&] {
    return cluster.View(kSharedJob).message.find("without stage-2") != std::string::npos;
  })) << cluster.View(kSharedJob).message;
  cluster.files().SetCapacity(1 << 20);
  cluster.AddStage(3);
  ExpectUndisturbedEnd(cluster);
}

}  // namespace
}  // namespace stagecoach
