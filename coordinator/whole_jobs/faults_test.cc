// Whole jobs whose stages, coordinator, steps or data fail, at every single event where that
// matters. Many faults in one run are the simulator's (tests/simulation).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Odd, so that both stages are hit everywhere in time.
constexpr int kStride = kSanitized ? 61 : 3;

TEST(FaultsTest, SurvivesAStageKilledAtAnyEvent) {
  AtEveryEvent(kStride, [](TestCluster& cluster, int at) {
    cluster.KillStage(at % 2);
    cluster.Wait(0.3).RestartStage(at % 2);
    cluster.ExpectGoldenEnd();
  });
}

TEST(FaultsTest, SurvivesTheCoordinatorKilledAtAnyEvent) {
  AtEveryEvent(kStride, [](TestCluster& cluster, int) {
    cluster.CrashCoordinator();
    cluster.Wait(0.4).StartCoordinator();
    cluster.ExpectGoldenEnd();
    EXPECT_THAT(cluster.Saved(), Not(Contains(HasSubstr(".tmp")))) << "swept";
  });
}

TEST(FaultsTest, CancelsAtAnyEvent) {
  AtEveryEvent(kStride, [](TestCluster& cluster, int) {
    if (IsTerminal(cluster.Phase())) return;
    ASSERT_TRUE(cluster.Cancel(kJob).ok());
    EXPECT_EQ(cluster.Phase(), JobPhase::kCancelled);
    cluster.End(JobPhase::kCancelled);
    cluster.Wait(3);  // whatever was under way comes in
    EXPECT_EQ(cluster.Phase(), JobPhase::kCancelled);
    EXPECT_FALSE(cluster.stage(0).loaded) << "released";
    EXPECT_THAT(cluster.Saved(), Not(Contains(HasSubstr(".tmp"))));
    EXPECT_TRUE(cluster.Cancel(kJob).ok()) << "harmless on an ended one";
  });
}

// No connection breaks, the lease ends, however long a step takes.
TEST(FaultsTest, NoticesAStoppedStageWithinTwoSecondsAndTakesASpareOne) {
  for (const double step_seconds : {SimulatedCluster::kStepSeconds, 4800.0}) {
    TestCluster cluster(3);
    cluster.Start().UntilStep(4);
    cluster.step_seconds = step_seconds;
    cluster.Wait(0.15).StopStage(1);
    const double stopped = cluster.now();
    cluster.UntilRecovery(1);
    EXPECT_LE(cluster.now() - stopped, 2.0);
    EXPECT_THAT(cluster.Message(),
                AllOf(HasSubstr("job small-1, step "), HasSubstr("stage-1 was silent")));
    cluster.step_seconds = SimulatedCluster::kStepSeconds;
    cluster.UntilPhase(JobPhase::kRunning)
        .ContinueStage(1);  // it comes back with a stale generation
    cluster.ExpectGoldenEnd();
    EXPECT_EQ(cluster.StageAt(1), "stage-2");
  }
}

// The other half: heartbeats go on, and the step does not, though it may be long.
TEST(FaultsTest, EndsAStepThatHangsInItsMiddleAndNamesWhoStandsStill) {
  constexpr double kMinute = kSanitized ? 8 : 60;
  TestCluster cluster(3);
  cluster.step_seconds = 80 * kMinute;
  cluster.Start().UntilPhase(JobPhase::kRunning).Wait(30 * kMinute);
  cluster.stage(0).hung = true;
  const double hung = cluster.now(), bound = JobLimits{}.first_step_deadline_seconds;
  cluster.UntilRecovery(1);
  EXPECT_NEAR(cluster.now() - hung, bound, 1) << "the time between two heartbeats";
  EXPECT_THAT(
      cluster.Message(),
      AllOf(HasSubstr("[at job small-1, step 0, train]"), HasSubstr("no operation done for 60."),
            HasSubstr("stage 0 (stage-0) says nothing of what it waits for"),
            HasSubstr("stage 1 (stage-1) says: activation of micro-batch 0")));
  EXPECT_THAT(cluster.aborts.back(), HasSubstr("no operation done for"));
  cluster.step_seconds = SimulatedCluster::kStepSeconds;
  cluster.ExpectGoldenEnd();
  EXPECT_EQ(cluster.View(kJob).recoveries, 1u);
  for (const size_t place : {0, 1}) {
    EXPECT_NE(cluster.StageAt(place), "stage-0") << "the spare one is taken instead of the suspect";
  }
}

TEST(FaultsTest, FailsAStepThatFailsOnDifferentStagesAndLeavesOtherJobsAlone) {
  TestCluster cluster(5);
  cluster.run_fault = [](int stage, const RunCommand& command) {
    const bool fails = stage == 1 && command.fence.step == 4 && command.fence.job == kJob;
    return fails ? absl::InternalError("kernel crashed") : absl::OkStatus();
  };
  cluster.Start().Start(SmallJob(2), "other");
  EXPECT_THAT(cluster.Failure(), AllOf(HasSubstr("step 4 failed 3 times, on stage-1 and stage-4"),
                                       HasSubstr("kernel crashed")));
  cluster.ExpectGoldenEnd("other", "other");
}

TEST(FaultsTest, AStageThatFailsForItsOwnReasonIsLeftForAnotherOne) {
  TestCluster cluster(3);
  cluster.run_fault = [&](int stage, const RunCommand& command) {
    const bool bad = command.fence.step >= 2 && cluster.stage(1).loaded && stage == 1 &&
                     cluster.stage(1).command.fence.generation == command.fence.generation;
    return bad ? absl::InternalError("this machine computes nothing") : absl::OkStatus();
  };
  cluster.Start().ExpectGoldenEnd();
  EXPECT_EQ(cluster.View(kJob).recoveries, 1u);
}

TEST(FaultsTest, MixesFingerprintsIfToldToAndKeepsThemInTheirPlaces) {
  for (const bool same_device : {true, false}) {
    TestCluster cluster(2);
    cluster.stage(1).fingerprint = "avx512";
    JobSpec spec = SmallJob(2);
    spec.pipeline.mixed_devices = true;
    cluster.Start(spec).UntilStep(5);
    if (!same_device) cluster.stage(0).fingerprint = "avx512";
    cluster.ReplaceStage(0);  // a suspect would come last if names did not decide
    if (same_device) {
      cluster.ExpectGoldenEnd();
      EXPECT_EQ(cluster.StageAt(0), "stage-0");
    } else {
      EXPECT_THAT(cluster.Failure(),
                  AllOf(HasSubstr("must stay in their places"), HasSubstr("\"avx2 | avx512\""),
                        HasSubstr("\"avx512 | avx512\"")));
    }
  }
}

// Symptom: after a stage's restart its job recovered one to three times more than needed. Cause:
// what was known of the connection to its address was of the process that had died.
TEST(FaultsTest, EveryRegistrationMakesAnewTheConnectionToItsAddress) {
  TestCluster cluster(2);
  cluster.Start().UntilStep(4).ReplaceStage(1);
  EXPECT_EQ(cluster.reconnects,
            (std::map<std::string, int>{{"host-0:8101", 1}, {"host-1:8101", 2}}));
  cluster.ExpectGoldenEnd();
}

// ---- files that every load reads ----------------------------------------------------------------

// Its first checkpoint is of step 3.
JobSpec JobWithWeights() {
  JobSpec spec = SmallJob(2);
  spec.initialize.from = "/weights/trunk.safetensors";
  return spec;
}

TEST(LoadedFilesTest, StagesThatReadDifferentWeightsEndTheJobByName) {
  TestCluster cluster(2);
  cluster.stage(1).weights_sha256 = "other";
  EXPECT_THAT(cluster.Start(JobWithWeights()).Failure(),
              AllOf(HasSubstr("initialize.from = \"/weights/trunk.safetensors\": "),
                    HasSubstr("read different files: tensor trunk with sha256 weights and other"),
                    HasSubstr("use the same file everywhere")));
}

// What a job began with is kept by the journal too. Weights are not read any more once there is a
// checkpoint.
TEST(LoadedFilesTest, AFileThatChangesBetweenLoadsEndsTheJobByName) {
  struct Case {
    uint64_t step;
    std::string SimulatedStage::*file;
    bool coordinator;  // is restarted, and not a stage
    const char* message;
  };
  for (const Case& c :
       {Case{4, &SimulatedStage::data_sha256, false, "data set changed"},
        Case{2, &SimulatedStage::weights_sha256, false, "the job was started with sha256"},
        Case{2, &SimulatedStage::weights_sha256, true, "the job was started with sha256"},
        Case{4, &SimulatedStage::weights_sha256, false, nullptr}}) {
    TestCluster cluster(2);
    cluster.Start(JobWithWeights()).UntilStep(c.step);
    for (const int k : {0, 1}) cluster.stage(k).*c.file = "edited";
    c.coordinator ? cluster.RestartCoordinator() : cluster.ReplaceStage(1);
    if (c.message != nullptr) {
      EXPECT_THAT(cluster.Failure(), HasSubstr(c.message));
      continue;
    }
    cluster.ExpectGoldenEnd();
    const std::string history = cluster.History(),
                      told = "begins with the weights of /weights/trunk.safetensors";
    EXPECT_THAT(history, HasSubstr(told));
    EXPECT_EQ(history.find(told), history.rfind(told)) << "once";
  }
}

// Adapters belong to the weights that they were trained with: at every load, and for every job that
// goes on with them.
TEST(LoadedFilesTest, ABaseThatChangesEndsTheJobByNameAlsoBehindACheckpoint) {
  const auto adapters = [](int64_t steps) {
    JobSpec spec = JobWithWeights();
    spec.training.steps = steps;
    spec.training.lora = {.rank = 1, .targets = {"qkv"}};
    return spec;
  };
  for (const bool coordinator : {false, true}) {
    TestCluster cluster(2);
    cluster.Start(adapters(7)).UntilStep(5);
    for (const int k : {0, 1}) cluster.stage(k).weights_sha256 = "edited";
    coordinator ? cluster.RestartCoordinator() : cluster.ReplaceStage(1);
    EXPECT_THAT(cluster.Failure(), HasSubstr("the job was started with sha256"));
  }
  TestCluster cluster(2);
  cluster.Start(adapters(7)).End(JobPhase::kSucceeded);
  JobSpec more = adapters(9);
  more.resume.job = kJob;
  cluster.Start(more, "more").End(JobPhase::kSucceeded, "more");
  for (const int k : {0, 1}) cluster.stage(k).weights_sha256 = "edited";
  more = adapters(11);
  more.resume.job = "more";
  EXPECT_THAT(cluster.Start(more, "other").Failure("other"),
              AllOf(HasSubstr("the adapters of the checkpoint were trained with sha256"),
                    HasSubstr("set initialize as the job that wrote it had it")));
}

}  // namespace
}  // namespace stagecoach
