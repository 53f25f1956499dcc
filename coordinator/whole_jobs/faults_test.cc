// Whole jobs whose stages, coordinator, steps or data fail, at every single event where that matters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "coordinator/testing/simulated_cluster.h"
#include "coordinator/whole_jobs/golden_job_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kSeeds = kSanitized ? 6 : 40;

TEST(FaultsTest, SurvivesAStageKilledAtAnyEvent) {
  for (int at = 3; at < Golden().events; at += kStride) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    while (cluster.events() < at) cluster.Step();
    const double killed = cluster.now();
    cluster.KillStage(at % 2);
    cluster.RunUntil([&] { return cluster.now() > killed + 0.3; });
    cluster.RestartStage(at % 2);
    ExpectGoldenEnd(cluster, absl::StrCat("killed at event ", at));
    if (HasFailure()) return;
  }
}

// Row 3: the coordinator is killed, nothing more is written.
TEST(FaultsTest, SurvivesTheCoordinatorKilledAtAnyEvent) {
  for (int at = 3; at < Golden().events; at += kStride) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    while (cluster.events() < at) cluster.Step();
    cluster.CrashCoordinator();
    const double killed = cluster.now();
    cluster.RunUntil([&] { return cluster.now() > killed + 0.4; });
    cluster.StartCoordinator();
    ExpectGoldenEnd(cluster, absl::StrCat("killed at event ", at));
    for (const std::string& name : StateFolders(cluster)) {
      EXPECT_THAT(name, ::testing::Not(HasSubstr(".tmp"))) << "swept, killed at event " << at;
    }
    if (HasFailure()) return;
  }
}

TEST(FaultsTest, CancelsAtAnyEvent) {
  for (int at = 3; at < Golden().events - 2; at += kStride) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    while (cluster.events() < at) cluster.Step();
    if (IsTerminal(cluster.View(kJob).phase)) break;
    ASSERT_TRUE(cluster.Cancel(kJob).ok());
    EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kCancelled);
    ASSERT_TRUE(cluster.RunToEnd(kJob));
    const double end = cluster.now() + 3;  // whatever was under way comes in
    cluster.RunUntil([&] { return cluster.now() > end; });
    EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kCancelled);
    EXPECT_FALSE(cluster.stage(0).loaded) << "released, cancelled at event " << at;
    for (const std::string& name : StateFolders(cluster)) {
      EXPECT_THAT(name, ::testing::Not(HasSubstr(".tmp"))) << "cancelled at event " << at;
    }
    EXPECT_TRUE(cluster.Cancel(kJob).ok()) << "harmless on an ended one";
  }
}

// Rows 6 and 9: no connection breaks, the lease ends.
TEST(FaultsTest, NoticesAStoppedStageWithinTwoSecondsAndTakesASpareOne) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
  const double stopped = cluster.now();
  cluster.StopStage(1);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).recoveries == 1; }));
  EXPECT_LE(cluster.now() - stopped, 2.0);
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("job small-1, step 4"), HasSubstr("stage-1 was silent")));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).step == 5; }));
  cluster.ContinueStage(1);  // it comes back with a stale generation
  ExpectGoldenEnd(cluster, "stopped stage");
  EXPECT_EQ(cluster.View(kJob).stages[1].stage_name, "stage-2");
}

// Row 6, the other half: heartbeats go on, the step does not.
TEST(FaultsTest, EndsAStepThatHangsAndNamesWhoDidNotAnswer) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
  cluster.stage(0).hung = true;
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).recoveries == 1; }, 15));
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("[at job small-1, step 4, train]"),
                    HasSubstr("stage 0 (stage-0) says nothing"),
                    HasSubstr("stage 1 (stage-1) says: activation of micro-batch 0")));
  EXPECT_THAT(cluster.aborts.back(), HasSubstr("no operation done for"));
  ExpectGoldenEnd(cluster, "hung stage");
  for (const StageAssignment& stage : cluster.View(kJob).stages) {
    EXPECT_NE(stage.stage_name, "stage-0") << "the spare one is taken instead of the suspect";
  }
}

TEST(FaultsTest, FailsAStepThatFailsOnDifferentStagesAndLeavesOtherJobsAlone) {
  SimulatedCluster cluster(5);
  cluster.run_fault = [](int stage, const RunCommand& command) {
    if (stage == 1 && command.fence.step == 4 && command.fence.job == kJob) {
      return absl::InternalError("kernel crashed");
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.Submit("other", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  const JobView view = cluster.View(kJob);
  EXPECT_EQ(view.phase, JobPhase::kFailed);
  EXPECT_THAT(view.message, AllOf(HasSubstr("step 4 failed 3 times, on stage-1 and stage-4"),
                                  HasSubstr("kernel crashed")));
  ASSERT_TRUE(cluster.RunToEnd("other"));
  EXPECT_EQ(cluster.View("other").phase, JobPhase::kSucceeded);
  EXPECT_EQ(OutcomeOf(cluster.Records("other")), Golden().outcome);
}

// Row 27.
TEST(FaultsTest, ContinuesWithFewerStagesIfToldTo) {
  SimulatedCluster cluster(3);
  JobSpec spec = SmallJob(3);
  spec.pipeline.continue_with_fewer_stages = true;
  ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 5; });
  cluster.KillStage(1);
  ExpectGoldenEnd(cluster, "fewer stages");
  EXPECT_EQ(cluster.View(kJob).stages.size(), 2u);
}

TEST(FaultsTest, FailsNamingWhatIsMissingIfNoStageReplacesALostOne) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(3)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 5; });
  cluster.KillStage(1);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).phase == JobPhase::kRecovering; }));
  ASSERT_TRUE(cluster.RunToEnd(kJob, 25));
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("1 stage is missing"), HasSubstr("wanted 3, ready 2"),
                    HasSubstr("continue_with_fewer_stages")));
  EXPECT_EQ(cluster.View(kJob).last_checkpoint_step, 3);
  EXPECT_THAT(StateFolders(cluster), ElementsAre("LATEST", "step-000000000003"));
}

// Row 18.
TEST(FaultsTest, SkipsANonFiniteStepEverywhereAndRepeatsTheSkipAfterARecovery) {
  Outcome undisturbed;
  for (const bool kill : {false, true}) {
    SimulatedCluster cluster(2);
    cluster.nonfinite_steps = {1, 4};
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    if (kill) {
      cluster.RunUntil([&] { return cluster.View(kJob).step == 5; });
      cluster.KillStage(0);
      cluster.RestartStage(0);
    }
    ASSERT_TRUE(cluster.RunToEnd(kJob));
    const JobView view = cluster.View(kJob);
    EXPECT_EQ(view.phase, JobPhase::kSucceeded);
    EXPECT_EQ(view.skipped_steps, 2u);
    EXPECT_THAT(cluster.violations, IsEmpty());
    int skipped = 0;
    for (const JobRecord& record : cluster.Records(kJob)) {
      if (record.kind != JobRecord::Kind::kStep || !record.skipped) continue;
      ++skipped;
      EXPECT_TRUE(std::isnan(record.loss));
    }
    EXPECT_EQ(skipped, kill ? 3 : 2);
    if (!kill) undisturbed = OutcomeOf(cluster.Records(kJob));
    EXPECT_EQ(OutcomeOf(cluster.Records(kJob)).digest, undisturbed.digest);
    EXPECT_NE(undisturbed.digest, Golden().outcome.digest);
  }
}

TEST(FaultsTest, FailsAfterTooManyNonFiniteStepsInARow) {
  SimulatedCluster cluster(2);
  cluster.nonfinite_steps = {1, 3, 4, 5};
  JobSpec spec = SmallJob(2);
  spec.training.max_nonfinite_steps = 3;
  ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kFailed);
  EXPECT_EQ(cluster.View(kJob).step, 6u);
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("3 steps in a row"), HasSubstr("training.max_nonfinite_steps=3")));
}

// Row 28.
TEST(FaultsTest, FailsByNameWhenTheDataChangesBetweenLoads) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
  cluster.KillStage(1);
  cluster.stage(0).data_sha256 = cluster.stage(1).data_sha256 = "edited";
  cluster.RestartStage(1);
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kFailed);
  EXPECT_THAT(cluster.View(kJob).message, HasSubstr("data set changed"));
}

TEST(FaultsTest, FailsAtOnceForTheJobsOwnFault) {
  SimulatedCluster cluster(2);
  cluster.load_error = absl::NotFoundError("data.text.path=/data/text: no such file");
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob, 1));
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("stage 0 (stage-0)"),
                    HasSubstr("/data/text: no such file")));
  EXPECT_EQ(cluster.View(kJob).recoveries, 0u);
}

TEST(FaultsTest, RefusesToMixFingerprintsInAJob) {
  SimulatedCluster cluster(2);
  cluster.stage(1).fingerprint = "avx512";
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("stage-0 has fingerprint \"avx2\""),
                    HasSubstr("stage-1 has \"avx512\"")));
}

TEST(FaultsTest, MixesFingerprintsIfToldToAndKeepsThemInTheirPlaces) {
  for (const bool same_device : {true, false}) {
    SimulatedCluster cluster(2);
    cluster.stage(1).fingerprint = "avx512";
    JobSpec spec = SmallJob(2);
    spec.pipeline.mixed_devices = true;
    ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
    cluster.RunUntil([&] { return cluster.View(kJob).step == 5; });
    cluster.KillStage(0);  // a suspect would come last if names did not decide
    if (!same_device) cluster.stage(0).fingerprint = "avx512";
    cluster.RestartStage(0);
    if (same_device) {
      ExpectGoldenEnd(cluster, "mixed");
      EXPECT_EQ(cluster.View(kJob).stages[0].stage_name, "stage-0");
      continue;
    }
    ASSERT_TRUE(cluster.RunToEnd(kJob));
    EXPECT_THAT(cluster.View(kJob).message,
                AllOf(HasSubstr("must stay in their places"), HasSubstr("\"avx2 | avx512\""),
                      HasSubstr("\"avx512 | avx512\"")));
  }
}

// Many faults in one run, by seed. All of them heal, so the job must end, with the same bits.
TEST(FaultsTest, EndsWithTheSameBitsUnderRandomFaults) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    SimulatedCluster cluster(3);
    JobSpec spec = SmallJob(2);
    spec.pipeline.replacement_timeout_seconds = 1000;
    ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
    for (int fault = 0; fault < 8; ++fault) {
      const int until = cluster.events() + static_cast<int>(random() % 60);
      while (cluster.events() < until) cluster.Step();
      const int victim = static_cast<int>(random() % 3);
      const double pause = cluster.now() + 0.1 * static_cast<double>(random() % 30);
      const auto wait = [&] { cluster.RunUntil([&] { return cluster.now() > pause; }); };
      switch (random() % 4) {
        case 0:
          cluster.KillStage(victim);
          wait();
          cluster.RestartStage(victim);
          break;
        case 1:
          cluster.StopStage(victim);
          wait();
          cluster.ContinueStage(victim);
          break;
        case 2:
          cluster.CrashCoordinator();
          wait();
          cluster.StartCoordinator();
          break;
        default:
          cluster.KillStage(victim);
          cluster.CrashCoordinator();
          cluster.RestartStage(victim);
          wait();
          cluster.StartCoordinator();
      }
    }
    ExpectGoldenEnd(cluster, absl::StrCat("seed ", seed));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace stagecoach
