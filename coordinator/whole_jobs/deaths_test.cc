// Symptom: a kernel wrote behind its memory, a stage died of SIGSEGV at step 0 each time, and the
// job recovered for ever. Cause: a process that is gone was the world's doing, whatever had ended
// it. Which deaths count: testdata/deaths.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DeathsTest : public WholeJobsTest {
 protected:
  // Steps are long, so that a stage can be met within one.
  void Start(int stages) {
    Begin(stages).step_seconds = 60;
    cluster_->Start();
  }
  // Until the job works at step 4 after so many recoveries: the stage that has its second place.
  int Runs(uint64_t recoveries) {
    int at = 1;
    cluster_->Until([&](const JobView& view) {
      at = cluster_->stages() > 2 && cluster_->stage(2).loaded ? 2 : 1;
      const SimulatedStage& one = cluster_->stage(at);
      return view.phase == JobPhase::kRunning && view.recoveries == recoveries && one.loaded &&
             one.next_step == 4 && view.step == 4;
    });
    return at;
  }
  void Crash(int stage) {
    cluster_->CrashStage(stage, "SIGSEGV", "backward");
    cluster_->RestartStage(stage);
  }
  void ExpectGoldenEnd() {
    cluster_->step_seconds = SimulatedCluster::kStepSeconds;
    cluster_->ExpectGoldenEnd();
  }
};

// A spare stage takes over at once, and dies of the same; a coordinator that was restarted counts
// on.
TEST_F(DeathsTest, ThreeAtOneInstructionEndTheJobAndAreNamed) {
  for (const int stages : {2, 3}) {
    for (const bool restarted : {false, true}) {
      Start(stages);
      for (const uint64_t death : {0, 1, 2}) {
        Crash(Runs(death + (restarted && death == 2 ? 1 : 0)));
        if (restarted && death == 1) cluster_->RestartCoordinator();
      }
      EXPECT_THAT(cluster_->Failure(kJob, 1),
                  AllOf(HasSubstr(" ended by SIGSEGV at step 4, micro-batch 1, backward (linear); "
                                  "3 times in a row"),
                        HasSubstr(stages == 2 ? "on stage-1; its log" : "on stage-1 and stage-2")));
      EXPECT_THAT(cluster_->History(),
                  HasSubstr("the reason: stage stage-1 ended by SIGSEGV at step 4"));
    }
  }
}

// A process registers again when an answer was lost, or when its coordinator is another one.
TEST_F(DeathsTest, OneThatIsToldAgainCountsOnce) {
  Start(2);
  Crash(Runs(0));
  for (int again = 0; again < 4; ++again) cluster_->RestartStage(1);
  cluster_->RestartCoordinator();
  for (int again = 0; again < 4; ++again) cluster_->RestartStage(1);
  ExpectGoldenEnd();
}

TEST_F(DeathsTest, ThoseOfOtherJobsAndOfGenerationsToComeAreNoneOfTheJobs) {
  Start(2);
  for (uint64_t death = 0; death < 6; ++death) {
    Runs(death);
    cluster_->CrashStage(1, "SIGABRT", "forward");
    Fence& fence = cluster_->stage(1).last_death->fence;
    if (death % 2 == 0) fence.job = "gone-1";
    if (death % 2 == 1) fence.generation += 1000;
    cluster_->RestartStage(1);
  }
  EXPECT_THAT(cluster_->History(), Not(HasSubstr("SIGABRT")));
  ExpectGoldenEnd();
}

}  // namespace
}  // namespace stagecoach
