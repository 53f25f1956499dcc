// Stages and coordinator whose folders of checkpoints are not one, and disks without room: whole
// jobs on a simulated cluster. What a job decides of which answer: testdata/checkpoint_folder.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SharedFolderTest : public WholeJobsTest {
 protected:
  // A job that has a checkpoint to go on from.
  void Train(int stages, int of_job = 2) { Begin(stages).Start(SmallJob(of_job)).UntilStep(5); }
  // These have a disk of their own where the others have the shared folder; or not any more.
  void Lose(const std::vector<int>& stages) {
    for (const int k : stages) cluster_->stage(k).own_files = &own_;
  }
  void Mount(const std::vector<int>& stages) {
    for (const int k : stages) cluster_->stage(k).own_files = nullptr;
  }
  void UntilSaid(const std::vector<std::string>& parts) {
    cluster_->Until([&](const JobView& view) {
      return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
        return absl::StrContains(view.message, part);
      });
    });
  }
  void Succeed(const std::string& id, const JobSpec& spec) { cluster_->Start(spec, id).Digest(id); }

  FaultFileSystem own_;
};

// Every checkpoint failed while training went on, and at the last step all of it was lost: a stage
// had a disk of its own where the others had the shared folder.
TEST_F(SharedFolderTest, AStageWithAFolderOfItsOwnFailsTheJobBeforeItsFirstStep) {
  Begin();
  Lose({1});
  EXPECT_THAT(cluster_->Start().Failure(kJob, 5),
              AllOf(HasSubstr("stage 1 (stage-1): "), HasSubstr("NOT_FOUND"),
                    HasSubstr(" /checkpoints/small-1/.tmp-1-0-"),
                    HasSubstr("mount one shared folder at the coordinator's --checkpoint-dir")));
  EXPECT_EQ(cluster_->View(kJob).recoveries, 0u);
  EXPECT_EQ(cluster_->View(kJob).step, 0u);
  EXPECT_THAT(cluster_->Wait(5).Saved(), IsEmpty()) << "none is left";
}

TEST_F(SharedFolderTest, ADiskWithoutRoomForTwoCheckpointsFailsTheJobBeforeItsFirstStep) {
  Begin();
  cluster_->files().SetCapacity(10000);  // one checkpoint has some 7000 bytes
  EXPECT_THAT(cluster_->Start().Failure(kJob, 5),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("has 10000 free")));
  EXPECT_EQ(cluster_->View(kJob).recoveries, 0u);
  JobSpec last_only = SmallJob(2);
  last_only.checkpoint.every_steps = 0;
  cluster_->Start(last_only, "other").UntilStep(1, "other");  // one is all it writes
}

// What fills a disk must not hide a stage that has a folder of its own.
TEST_F(SharedFolderTest, ARecoveryGoesOnWithoutAStageThatDoesNotSeeTheFolder) {
  for (const bool full : {false, true}) {
    Train(2);
    constexpr int64_t kAll = 1 << 20;
    cluster_->files().SetCapacity(kAll);
    const int64_t free = cluster_->files().FreeBytes("/checkpoints").value();
    if (full)
      cluster_->files().SetCapacity(kAll - free + 1000);  // for the question and its answers
    cluster_->AddStage(2);
    Lose({2});
    cluster_->KillStage(1);
    UntilSaid({"without stage-2, which did not see the folder of checkpoints"});
    EXPECT_EQ(cluster_->Phase(), JobPhase::kRecovering) << "it waits for another one";
    cluster_->files().SetCapacity(kAll);
    cluster_->AddStage(3);
    cluster_->ExpectGoldenEnd();
    EXPECT_THAT(cluster_->History(), HasSubstr("stage 1 (stage-2): "));
  }
}

// A job whose stages had all lost the mount took them again and again, while others stood idle. One
// of one stage told nobody, so the next job was given that stage, and failed.
TEST_F(SharedFolderTest, StagesThatHaveAllLostTheFolderGiveWayToOthers) {
  Train(4);
  Lose({0, 1});
  cluster_->RestartStage(1);
  EXPECT_EQ(cluster_->UntilStep(6).StageAt(0), "stage-2");
  EXPECT_EQ(cluster_->StageAt(1), "stage-3");
  cluster_->ExpectGoldenEnd();

  Train(3, 1);
  Lose({0});
  cluster_->RestartStage(0);
  EXPECT_EQ(cluster_->UntilStep(6).StageAt(0), "stage-1");
  Succeed("other", SmallJob(1));
  cluster_->ExpectGoldenEnd();
}

// One good stage beside two that had lost the mount let each of the two be left aside for good, and
// the job failed after a minute, though both were mended by then; without the good one it went on.
TEST_F(SharedFolderTest, StagesThatWereLeftAsideAreTriedAgainWhenThereAreNoOthers) {
  Train(3);
  Lose({0, 1});
  cluster_->RestartStage(1);
  UntilSaid({"stage-0", "stage-1", "waits for 2 stages"});
  Mount({0, 1});
  cluster_->ExpectGoldenEnd();
}

// What the coordinator still sees comes back: with no other stages the job waits for it, with one
// stage as with two.
TEST_F(SharedFolderTest, StagesThatHaveAllLostTheFolderAreTriedUntilItIsBack) {
  for (const std::vector<int>& all : {std::vector<int>{0}, std::vector<int>{0, 1}}) {
    Train(static_cast<int>(all.size()), static_cast<int>(all.size()));
    Lose(all);
    cluster_->RestartStage(0);
    ASSERT_FALSE(IsTerminal(cluster_->Wait(300).Phase())) << cluster_->Message();
    Mount(all);
    cluster_->ExpectGoldenEnd();
  }
}

// Stages that had lost the mount were left aside until they were restarted, though the one that
// might have seen it had said nothing: the job failed after a minute for want of others.
TEST_F(SharedFolderTest, AStageThatHangsProvesNothingAgainstThoseThatHaveLostTheFolder) {
  Train(2);
  Lose({0});
  cluster_->RestartStage(1);
  cluster_->stage(1).load_hangs = true;
  EXPECT_THAT(cluster_->UntilRecovery(2).Message(), HasSubstr("stage 0 (stage-0): "));
  Mount({0});
  cluster_->stage(1).load_hangs = false;
  cluster_->ExpectGoldenEnd();
}

// What the stages wrote is there, and it is the coordinator that cannot read it: the job left its
// stages, and what they had in memory, for others.
TEST_F(SharedFolderTest, WhatTheCoordinatorDoesNotFindIsNoFaultOfTheStages) {
  Train(4);
  cluster_->RestartStage(1);
  const auto answered = [&] {  // the question and two answers
    for (const std::string& name : cluster_->Saved()) {
      if (!absl::StartsWith(name, ".tmp-")) continue;
      if (cluster_->Saved(absl::StrCat(kJob, "/", name)).size() == 3) return true;
    }
    return false;
  };
  ASSERT_TRUE(cluster_->RunUntil(answered, 60));
  cluster_->files().Inject({.from_then_on = true});
  EXPECT_THAT(cluster_->UntilRecovery(2, 60).Message(), HasSubstr("cannot be read or written now"));
  cluster_->files().ClearFault();
  EXPECT_EQ(cluster_->UntilStep(6).StageAt(0), "stage-0");
  EXPECT_EQ(cluster_->StageAt(1), "stage-1");
  cluster_->ExpectGoldenEnd();
}

// A stage that one job had failed for was given to the next job, and the next, while others were
// free.
TEST_F(SharedFolderTest, AStageThatDoesNotSeeTheFolderIsPassedOverWhileOthersSuffice) {
  Begin();
  Lose({1});
  cluster_->Start(SmallJob(2), "first").Failure("first");
  cluster_->AddStage(2);
  cluster_->Start().Start(SmallJob(2), "waits");
  EXPECT_EQ(cluster_->Message("waits"),
            "waits for 2 stages, 0 are ready, 3 are alive, without stage-1, which did not see the "
            "folder of checkpoints");
  cluster_->ExpectGoldenEnd();
  EXPECT_THAT(cluster_->History(),
              HasSubstr("without stage-1, which did not see the folder of checkpoints"));
  cluster_->Digest("waits");

  EXPECT_THAT(cluster_->Start(SmallJob(3), "needs-all").Failure("needs-all"),
              HasSubstr("stage 2 (stage-1): "));
  Mount({1});
  Succeed("needs-all-2", SmallJob(3));
  Succeed("last", SmallJob(2));
  EXPECT_EQ(cluster_->StageAt(1, "last"), "stage-1") << "it is like the others again";
}

// A recovering job waited for a stage that another job kept, and failed, with a free one beside it
// that had been noted without the folder, and whose mount had been mended since.
TEST_F(SharedFolderTest, ARecoveryTakesAStageThatWasPassedOverWhenTheOthersWorkForOtherJobs) {
  Begin(4);
  Lose({3});
  cluster_->Start(SmallJob(4), "first").Failure("first");  // stage-3 is noted
  Mount({3});
  JobSpec long_one = SmallJob(1);
  long_one.training.steps = 1000;
  cluster_->Start().Start(long_one, "long").UntilStep(5);
  ASSERT_EQ(cluster_->StageAt(0, "long"), "stage-2");
  cluster_->KillStage(0);
  cluster_->ExpectGoldenEnd();
  EXPECT_EQ(cluster_->Phase("long"), JobPhase::kRunning) << "it kept its stage all the while";
}

// A coordinator that is upgraded first has stages that leave the new question unanswered: all of
// them counted as not seeing the folder.
TEST_F(SharedFolderTest, StagesOfAnOlderVersionAreNotTakenForThoseThatDoNotSeeTheFolder) {
  Begin();
  cluster_->stage(0).old_version = cluster_->stage(1).old_version = true;
  cluster_->Start().UntilStep(5).RestartStage(1);
  cluster_->ExpectGoldenEnd();
}

}  // namespace
}  // namespace stagecoach
