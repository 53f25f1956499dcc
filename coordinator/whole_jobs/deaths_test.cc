// Symptom: a kernel wrote behind its memory, a stage died of SIGSEGV at step 0 each time, and the job recovered for ever.
// Cause: a process that is gone was the world's doing, whatever had ended it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "coordinator/testing/simulated_cluster.h"
#include "coordinator/whole_jobs/golden_job_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

class DeathsTest : public ::testing::Test {
 protected:
  // Steps are long, so that a stage can be met within one.
  void Start(int stages, int of_job = 2) {
    cluster_ = std::make_unique<SimulatedCluster>(stages);
    cluster_->step_seconds = 60;
    ASSERT_TRUE(cluster_->Submit(kJob, SmallJob(of_job)).ok());
  }
  JobView View() { return cluster_->View(kJob); }
  // Until this stage works at this step of the job's, after so many recoveries.
  bool Runs(int stage, uint64_t step, uint64_t recoveries) {
    return cluster_->RunUntil([&] {
      const JobView view = View();
      const SimulatedStage& one = cluster_->stage(stage);
      return view.phase == JobPhase::kRunning && view.recoveries == recoveries && one.loaded &&
             one.next_step == step && view.step == step;
    });
  }
  void Crash(int stage, const std::string& instruction = "backward") {
    cluster_->CrashStage(stage, "SIGSEGV", instruction);
    cluster_->RestartStage(stage);
  }
  void GoOn() { cluster_->step_seconds = SimulatedCluster::kStepSeconds; }

  std::unique_ptr<SimulatedCluster> cluster_;
};

TEST_F(DeathsTest, ThreeAtOneInstructionEndTheJobAndAreNamed) {
  Start(2);
  for (const uint64_t death : {0, 1, 2}) {
    ASSERT_TRUE(Runs(1, 4, death)) << View().message;
    Crash(1);
  }
  ASSERT_TRUE(cluster_->RunToEnd(kJob, 1)) << View().message;
  EXPECT_EQ(View().phase, JobPhase::kFailed);
  EXPECT_THAT(View().message,
              AllOf(HasSubstr("stage stage-1 ended by SIGSEGV at step 4, micro-batch 1, backward "
                              "(linear); 3 times in a row"),
                    HasSubstr("on stage-1; its log")));
  EXPECT_THAT(cluster_->Records(kJob),
              Contains(Field(&JobRecord::message,
                             HasSubstr("the reason: stage stage-1 ended by SIGSEGV at step 4"))));
}

// A spare stage takes over at once, and dies of the same.
TEST_F(DeathsTest, ItDoesNotMatterOnWhichStages) {
  Start(3);
  int at = 1;
  for (const uint64_t death : {0, 1, 2}) {
    ASSERT_TRUE(cluster_->RunUntil([&] {
      at = cluster_->stage(2).loaded ? 2 : 1;
      return View().phase == JobPhase::kRunning && View().step == 4 && View().recoveries == death &&
             cluster_->stage(at).loaded && cluster_->stage(at).next_step == 4;
    })) << View().message;
    Crash(at);
  }
  ASSERT_TRUE(cluster_->RunToEnd(kJob, 1)) << View().message;
  EXPECT_THAT(View().message, HasSubstr("on stage-1 and stage-2"));
}

TEST_F(DeathsTest, AtDifferentStepsTheyAreRecoveredFrom) {
  Start(2);
  for (uint64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(Runs(1, step, step)) << View().message;
    Crash(1);
  }
  GoOn();
  ExpectGoldenEnd(*cluster_, "six deaths at six steps");
}

TEST_F(DeathsTest, AtDifferentInstructionsTheyAreRecoveredFrom) {
  Start(2);
  for (uint64_t death = 0; death < 6; ++death) {
    ASSERT_TRUE(Runs(1, 4, death)) << View().message;
    Crash(1, death % 2 == 0 ? "forward" : "backward");
  }
  GoOn();
  ExpectGoldenEnd(*cluster_, "six deaths here and there");
}

TEST_F(DeathsTest, AStepThatIsThroughBeginsTheCountAnew) {
  Start(2);
  uint64_t recoveries = 0;
  for (int again = 0; again < 3; ++again) {
    // Of the checkpoint at step 3, steps are done again.
    for (int death = 0; death < 2; ++death) {
      ASSERT_TRUE(Runs(1, 4, recoveries++)) << View().message;
      Crash(1);
    }
    ASSERT_TRUE(Runs(1, 5, recoveries++)) << View().message;
    cluster_->KillStage(1);
    cluster_->RestartStage(1);
  }
  GoOn();
  ExpectGoldenEnd(*cluster_, "six deaths, never three in a row");
}

TEST_F(DeathsTest, KillsAndSilenceDoNotCount) {
  Start(2);
  for (uint64_t death = 0; death < 6; ++death) {
    ASSERT_TRUE(Runs(1, 4, death)) << View().message;
    if (death % 3 == 0) Crash(1);
    if (death % 3 == 1) {
      cluster_->KillStage(1);
      cluster_->stage(1).last_death.reset();
      cluster_->RestartStage(1);
    }
    if (death % 3 == 2) {
      cluster_->StopStage(1);
      const double end = cluster_->now() + 5;
      cluster_->RunUntil([&] { return cluster_->now() >= end; });
      cluster_->ContinueStage(1);
    }
  }
  GoOn();
  ExpectGoldenEnd(*cluster_, "two deaths between kills and silence");
}

// A process registers again when an answer was lost, or when its coordinator is another one.
TEST_F(DeathsTest, OneThatIsToldAgainCountsOnce) {
  Start(2);
  ASSERT_TRUE(Runs(1, 4, 0));
  Crash(1);
  for (int again = 0; again < 4; ++again) cluster_->RestartStage(1);
  cluster_->CrashCoordinator();
  cluster_->StartCoordinator();
  for (int again = 0; again < 4; ++again) cluster_->RestartStage(1);
  GoOn();
  ExpectGoldenEnd(*cluster_, "one death");
}

TEST_F(DeathsTest, ACoordinatorThatWasRestartedCountsOn) {
  Start(2);
  for (const uint64_t death : {0, 1}) {
    ASSERT_TRUE(Runs(1, 4, death)) << View().message;
    Crash(1);
  }
  cluster_->CrashCoordinator();
  cluster_->StartCoordinator();
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return View().phase == JobPhase::kRunning && View().step == 4 && cluster_->stage(1).loaded &&
           cluster_->stage(1).next_step == 4;
  })) << View().message;
  Crash(1);
  ASSERT_TRUE(cluster_->RunToEnd(kJob, 1)) << View().message;
  EXPECT_THAT(View().message, HasSubstr("3 times in a row"));
}

TEST_F(DeathsTest, ThoseOfOtherJobsAndOfGenerationsToComeAreNoneOfTheJobs) {
  Start(2);
  for (uint64_t death = 0; death < 6; ++death) {
    ASSERT_TRUE(Runs(1, 4, death)) << View().message;
    cluster_->CrashStage(1, "SIGABRT", "forward");
    Fence& fence = cluster_->stage(1).last_death->fence;
    if (death % 2 == 0) fence.job = "gone-1";
    if (death % 2 == 1) fence.generation += 1000;
    cluster_->RestartStage(1);
  }
  EXPECT_THAT(cluster_->Records(kJob),
              Not(Contains(Field(&JobRecord::message, HasSubstr("SIGABRT")))));
  GoOn();
  ExpectGoldenEnd(*cluster_, "records of others");
}

}  // namespace
}  // namespace stagecoach
