// Whole jobs on a simulated cluster: what users are promised, and faults at every single event.
#include "coordinator/loop/job_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "coordinator/loop/golden_job_testing.h"
#include "coordinator/loop/simulated_cluster_testing.h"
#include "network/zoo/gpt.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Faults are put at every n-th event; odd, so that both stages are hit everywhere in time.
constexpr int kStride = kSanitized ? 23 : 3;
constexpr uint32_t kSeeds = kSanitized ? 6 : 40;

std::vector<std::string> StateFolders(SimulatedCluster& cluster) {
  return cluster.files()
      .List(absl::StrCat("/checkpoints/", kJob))
      .value_or(std::vector<std::string>{});
}

TEST(JobLoopTest, RunsAJobToItsEndAndTellsAllOfIt) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ExpectGoldenEnd(cluster, "no fault");
  std::string history;
  for (const JobRecord& record : cluster.Records(kJob)) {
    static constexpr const char* kKinds[] = {"state", "step", "eval", "save", "recovery", "end"};
    absl::StrAppend(&history, kKinds[static_cast<int>(record.kind)],
                    record.kind == JobRecord::Kind::kState
                        ? absl::StrCat(":", JobPhaseName(record.phase))
                        : absl::StrCat(record.step),
                    " ");
  }
  EXPECT_EQ(history,
            "state:submitted state:planned state:loading state:running step1 step2 step3 eval3 "
            "save3 step4 step5 step6 eval6 save6 step7 state:finishing eval7 save7 end7 ");
  const JobView view = cluster.View(kJob);
  EXPECT_EQ(view.weights_folder, absl::StrCat("/state/exports/", kJob));
  EXPECT_THAT(view.weights_digest, HasSubstr("sha256:"));
  EXPECT_EQ(view.last_checkpoint_step, 7);
  EXPECT_NEAR(view.step_seconds, 0.1, 0.01);
  EXPECT_NEAR(view.tokens_per_second, 16 / view.step_seconds, 1e-6);
  EXPECT_NEAR(view.bubble, 1 - 0.12 / (2 * view.step_seconds), 1e-9);
  EXPECT_DOUBLE_EQ(view.bubble_ideal, 1.0 / 3);
  EXPECT_TRUE(cluster.files().Exists(view.weights_folder + "/model.safetensors"));
  EXPECT_TRUE(cluster.files().Exists(view.weights_folder + "/stagecoach.json"));
  EXPECT_THAT(StateFolders(cluster),
              ElementsAre("LATEST", "step-000000000006", "step-000000000007"));
  for (const StageView& stage : cluster.loop().ListStages()) {
    EXPECT_EQ(stage.state, StageState::kReady) << "the stages are free again";
  }
}

TEST(JobLoopTest, GivesTheSameBitsForEveryNumberOfStages) {
  for (int stages : {1, 3, 4, 7}) {
    SimulatedCluster cluster(stages);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(stages)).ok());
    ExpectGoldenEnd(cluster, absl::StrCat(stages, " stages"));
  }
}

TEST(JobLoopTest, SurvivesAStageKilledAtAnyEvent) {
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
TEST(JobLoopTest, SurvivesTheCoordinatorKilledAtAnyEvent) {
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

// A checkpoint was committed before the records of its steps were on disk: with one a step, some were never told of.
TEST(JobLoopTest, TellsOfEveryStepThatACheckpointHas) {
  JobSpec spec = SmallJob(2);
  spec.checkpoint.every_steps = 1;
  constexpr int kBehindTheFirstCheckpoints = 80;
  constexpr int kEvery = (kStride + 2) / 3;  // sanitized not every one
  for (int at = 3; at < kBehindTheFirstCheckpoints; at += kEvery) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
    while (cluster.events() < at) cluster.Step();
    cluster.CrashCoordinator();
    cluster.StartCoordinator();
    ExpectGoldenEnd(cluster, absl::StrCat("killed at event ", at));
    if (HasFailure()) return;
  }
}

TEST(JobLoopTest, CancelsAtAnyEvent) {
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
TEST(JobLoopTest, NoticesAStoppedStageWithinTwoSecondsAndTakesASpareOne) {
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
TEST(JobLoopTest, EndsAStepThatHangsAndNamesWhoDidNotAnswer) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
  cluster.stage(0).hung = true;
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).recoveries == 1; }, 15));
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("job small-1, step 4, train: no operation done for 10.0 s"),
                    HasSubstr("stage 0 (stage-0) says nothing"),
                    HasSubstr("stage 1 (stage-1) says: activation of micro-batch 0")));
  EXPECT_THAT(cluster.aborts.back(), HasSubstr("no operation done for"));
  ExpectGoldenEnd(cluster, "hung stage");
  for (const StageAssignment& stage : cluster.View(kJob).stages) {
    EXPECT_NE(stage.stage_name, "stage-0") << "the spare one is taken instead of the suspect";
  }
}

TEST(JobLoopTest, FailsAStepThatFailsOnDifferentStagesAndLeavesOtherJobsAlone) {
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
TEST(JobLoopTest, ContinuesWithFewerStagesIfToldTo) {
  SimulatedCluster cluster(3);
  JobSpec spec = SmallJob(3);
  spec.pipeline.continue_with_fewer_stages = true;
  ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 5; });
  cluster.KillStage(1);
  ExpectGoldenEnd(cluster, "fewer stages");
  EXPECT_EQ(cluster.View(kJob).stages.size(), 2u);
}

TEST(JobLoopTest, FailsNamingWhatIsMissingIfNoStageReplacesALostOne) {
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

TEST(JobLoopTest, SaysWhatAQueuedJobWaitsForAndFailsIfTheStagesNeverCome) {
  SimulatedCluster cluster(1);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kSubmitted);
  EXPECT_EQ(cluster.View(kJob).message, "waits for 2 stages, 1 is ready, 1 is alive");
  ASSERT_TRUE(cluster.RunToEnd(kJob, 25));
  EXPECT_THAT(cluster.View(kJob).message, HasSubstr("1 stage is missing after 20.0 s"));
}

TEST(JobLoopTest, KeepsTheQueueInOrderAndRunsJobsOnDisjointStages) {
  SimulatedCluster cluster(4);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.Submit("b", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.Submit("c", SmallJob(4)).ok());
  ASSERT_TRUE(cluster.Submit("d", SmallJob(1)).ok());
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kLoading);
  EXPECT_EQ(cluster.View("b").phase, JobPhase::kLoading);
  EXPECT_EQ(cluster.View("c").message,
            "waits for 4 stages, 0 are ready, 4 are alive, the others work for other jobs");
  ASSERT_TRUE(cluster.RunToEnd("c"));
  EXPECT_EQ(cluster.View("c").phase, JobPhase::kSucceeded) << "never starved by the smaller d";
  ASSERT_TRUE(cluster.RunToEnd("d"));
  for (const char* id : {"a", "b", "c", "d"}) {
    EXPECT_EQ(OutcomeOf(cluster.Records(id)), Golden().outcome) << id;
  }
  EXPECT_THAT(cluster.violations, IsEmpty());
}

TEST(JobLoopTest, TakesEveryFreeStageForAnAutoJob) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(0)).ok());
  ExpectGoldenEnd(cluster, "auto");
  EXPECT_EQ(cluster.View(kJob).stages.size(), 3u);
}

// An automatic job began on the one stage that had come up first, and stayed there.
TEST(JobLoopTest, AnAutoJobWaitsUntilAsManyStagesAreFreeAsItAskedFor) {
  SimulatedCluster cluster(1);
  JobSpec spec = SmallJob(0);
  spec.pipeline.min_stages = 2;
  ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
  EXPECT_EQ(cluster.View(kJob).message, "waits for 2 stages, 1 is ready, 1 is alive");
  EXPECT_THAT(std::string(cluster.PlanJob(spec).status().message()),
              HasSubstr("at least 2, and 1 is registered"));
  cluster.AddStage(1);
  cluster.AddStage(2);  // too late for this job: it took what was free and enough
  EXPECT_EQ(cluster.PlanJob(SmallJob(0))->partition.stages(), 1) << "for what is free";
  ExpectGoldenEnd(cluster, "least");
  EXPECT_EQ(cluster.View(kJob).stages.size(), 2u);
}

// Row 18.
TEST(JobLoopTest, SkipsANonFiniteStepEverywhereAndRepeatsTheSkipAfterARecovery) {
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

TEST(JobLoopTest, FailsAfterTooManyNonFiniteStepsInARow) {
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

// Row 14: the disk is full for one checkpoint.
TEST(JobLoopTest, TrainsOnWhenACheckpointFailsAndSavesTheNext) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 3; });
  cluster.files().SetCapacity(100);
  cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
  cluster.files().SetCapacity(1 << 30);
  ExpectGoldenEnd(cluster, "full disk");
  std::vector<std::string> errors;
  for (const JobRecord& record : cluster.Records(kJob)) {
    if (record.kind == JobRecord::Kind::kCheckpoint && !record.message.empty()) {
      errors.push_back(record.message);
    }
  }
  EXPECT_THAT(errors, ElementsAre(AllOf(HasSubstr("checkpoint at step 3"),
                                        HasSubstr("RESOURCE_EXHAUSTED"))));
}

// It ended as FAILED, its result unwritten, for a disk that somebody made room on a minute later.
TEST(JobLoopTest, WaitsForRoomForItsLastCheckpointAndKeepsTheOneBefore) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).last_checkpoint_step == 6; });
  cluster.files().SetCapacity(100);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).recoveries == 5; }, 600));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kRecovering);
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("at step 7"),
                    HasSubstr("the one of step 6 is kept"), HasSubstr("until the folder")));
  EXPECT_THAT(StateFolders(cluster),
              ElementsAre("LATEST", "step-000000000003", "step-000000000006"));
  cluster.files().SetCapacity(std::numeric_limits<int64_t>::max());
  ExpectGoldenEnd(cluster, "with room again");
}

// Seen: with steps that took a minute together the count of tries began anew at each, so that it trained them again and again
// without a wait, and nothing said why.
TEST(JobLoopTest, EachTryOfTheLastCheckpointWaitsLongerHoweverLongItsStepsTake) {
  SimulatedCluster cluster(2);
  cluster.step_seconds = 100;
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  constexpr double kDay = 86400;
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).last_checkpoint_step == 6; }, kDay));
  cluster.files().SetCapacity(100);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).recoveries == 4; }, kDay));
  EXPECT_THAT(cluster.View(kJob).message, HasSubstr("the next attempt is in 2 s"));
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.View(kJob).phase == JobPhase::kRunning; }, kDay));
  EXPECT_THAT(cluster.View(kJob).message,
              HasSubstr("again, as the last checkpoint, at step 7, could not be written"));
  cluster.files().SetCapacity(std::numeric_limits<int64_t>::max());
  ASSERT_TRUE(cluster.RunToEnd(kJob, kDay));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kSucceeded) << cluster.View(kJob).message;
  EXPECT_THAT(cluster.View(kJob).message, ::testing::Not(HasSubstr("again")));
}

// Every call of a checkpoint's writing fails once: training goes on, the end is the same.
TEST(JobLoopTest, SurvivesAnyFailedCallOfAnEarlierCheckpoint) {
  for (int64_t call = 1; call < 200; call += kStride / 3 + 1) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    cluster.RunUntil([&] { return cluster.View(kJob).step == 3; });
    const int64_t before = cluster.files().calls();
    cluster.files().Inject({.call = call, .code = absl::StatusCode::kResourceExhausted});
    cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
    const bool past = cluster.files().calls() - before < call;
    cluster.files().ClearFault();
    ExpectGoldenEnd(cluster, absl::StrCat("call ", call));
    if (past || HasFailure()) return;
  }
}

// Row 16.
TEST(JobLoopTest, FallsBackToAnOlderCheckpointWhenTheNewestIsBroken) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).last_checkpoint_step == 6; });
  const std::string folder = absl::StrCat("/checkpoints/", kJob, "/step-000000000006/");
  const std::string shard = folder + cluster.files().List(folder)->at(1);
  std::string bytes = cluster.files().Contents(shard);
  bytes[bytes.size() - 3] ^= 1;
  cluster.files().SetContents(shard, bytes);
  cluster.KillStage(0);
  cluster.RestartStage(0);
  ExpectGoldenEnd(cluster, "flipped bit");
  std::string history;
  for (const JobRecord& record : cluster.Records(kJob)) absl::StrAppend(&history, record.message);
  EXPECT_THAT(history, HasSubstr("a broken checkpoint was set aside: step-000000000006"));
}

TEST(JobLoopTest, ResumesAnotherJobsCheckpointWithAnotherNumberOfStages) {
  SimulatedCluster cluster(3);
  JobSpec first = SmallJob(2);
  first.training.steps = 4;
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  JobSpec second = SmallJob(3);
  second.resume_job = "first";
  ASSERT_TRUE(cluster.Submit(kJob, second).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kSucceeded) << cluster.View(kJob).message;
  EXPECT_EQ(OutcomeOf(cluster.Records(kJob)).digest, Golden().outcome.digest);
  EXPECT_EQ(OutcomeOf(cluster.Records(kJob)).losses.begin()->first, 5u);

  // Recovery before its own first checkpoint goes back to the other job's.
  second.resume_step = 3;
  second.checkpoint.every_steps = 0;
  ASSERT_TRUE(cluster.Submit("third", second).ok());
  cluster.RunUntil([&] { return cluster.View("third").step == 6; });
  cluster.KillStage(2);
  cluster.RestartStage(2);
  ASSERT_TRUE(cluster.RunToEnd("third"));
  EXPECT_EQ(OutcomeOf(cluster.Records("third")).digest, Golden().outcome.digest);
}

TEST(JobLoopTest, RefusesAResumeThatWouldChangeTheBits) {
  SimulatedCluster cluster(2);
  JobSpec first = SmallJob(2);
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  const auto refusal = [&](const std::function<void(JobSpec&)>& change) {
    JobSpec spec = SmallJob(2);
    spec.training.steps = 20;
    spec.resume_job = "first";
    change(spec);
    return cluster.Submit("", spec).status();
  };
  EXPECT_THAT(refusal([](JobSpec& s) { s.seed = 8; }).message(),
              HasSubstr("seed=8 but checkpoint first at step 7 was made with 7"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.batch_size = 8; }).message(),
              HasSubstr("training.batch_size=8"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.micro_batches = 4; }).message(),
              HasSubstr("training.micro_batches=4"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.model.attributes.Set("width", int64_t{8}); }).message(),
              HasSubstr("model (sha256)"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.steps = 7; }).message(),
              HasSubstr("training.steps=7"));
  // Seen: accepted, and then every load failed with DATA_LOSS for want of the slots, which counted as
  // the stages' fault: twelve recoveries.
  const absl::Status optimizer =
      refusal([](JobSpec& s) { s.training.optimizer = SgdSpec{.momentum = 0.9}; });
  EXPECT_TRUE(absl::IsFailedPrecondition(optimizer)) << optimizer;
  EXPECT_THAT(std::string(optimizer.message()),
              AllOf(HasSubstr("training.optimizer: sgd keeps state velocity, checkpoint first at "
                              "step 7 holds state m and v"),
                    HasSubstr("resume.fresh_optimizer: true")));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.optimizer = SgdSpec{}; }).message(),
              HasSubstr("sgd keeps no state"));
  const absl::Status absent = refusal([](JobSpec& s) { s.resume_job = "nobody"; });
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
  const absl::Status step = refusal([](JobSpec& s) { s.resume_step = 5; });
  EXPECT_TRUE(absl::IsNotFound(step)) << step;
}

// Row 28.
TEST(JobLoopTest, FailsByNameWhenTheDataChangesBetweenLoads) {
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

TEST(JobLoopTest, FailsAtOnceForTheJobsOwnFault) {
  SimulatedCluster cluster(2);
  cluster.load_error = absl::NotFoundError("data.text.path=/data/text: no such file");
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob, 1));
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("stage 0 (stage-0)"),
                    HasSubstr("/data/text: no such file")));
  EXPECT_EQ(cluster.View(kJob).recoveries, 0u);
}

TEST(JobLoopTest, RefusesToMixFingerprintsInAJob) {
  SimulatedCluster cluster(2);
  cluster.stage(1).fingerprint = "avx512";
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("stage-0 has fingerprint \"avx2\""),
                    HasSubstr("stage-1 has \"avx512\"")));
}

TEST(JobLoopTest, MixesFingerprintsIfToldToAndKeepsThemInTheirPlaces) {
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

TEST(JobLoopTest, MeasuresLayersForAnAutomaticPartitionAndDoesWithoutIfThatFails) {
  for (const bool works : {true, false}) {
    SimulatedCluster cluster(2);
    if (!works) cluster.profile_error = absl::InternalError("no clock");
    JobSpec spec = SmallJob(2);
    spec.pipeline.partition.kind = PartitionSpec::Kind::kAuto;
    ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
    cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
    cluster.KillStage(1);
    cluster.RestartStage(1);
    ExpectGoldenEnd(cluster, "profile");
    EXPECT_EQ(cluster.profiles, 1) << "measured once, also over a recovery";
    std::string history;
    for (const JobRecord& record : cluster.Records(kJob)) absl::StrAppend(&history, record.message);
    EXPECT_EQ(history.find("costs come from the cost model") != std::string::npos, !works);
  }
}

// Row 23.
TEST(JobLoopTest, AcceptsARepeatedSubmissionOnce) {
  SimulatedCluster cluster(2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  }
  EXPECT_EQ(cluster.loop().List().jobs.size(), 1u);
  const absl::Status other = cluster.Submit(kJob, SmallJob(1)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(other)) << other;
  // Both calls are under way before either is accepted.
  int accepted = 0;
  for (int i = 0; i < 2; ++i) {
    cluster.loop().Submit("twice", SmallJob(2), [&](absl::StatusOr<JobView> view) {
      EXPECT_TRUE(view.ok());
      ++accepted;
    });
  }
  cluster.RunUntil([&] { return accepted == 2; });
  EXPECT_EQ(cluster.loop().List().jobs.size(), 2u);
}

TEST(JobLoopTest, RefusesWhatItCannotRunNamingTheField) {
  JobManagerOptions options;
  options.max_jobs = 1;
  SimulatedCluster cluster(2, options);
  JobSpec spec = SmallJob(2);
  EXPECT_TRUE(absl::IsInvalidArgument(cluster.Submit("Bad_Id", spec).status()));
  spec.training.steps = -1;
  EXPECT_THAT(cluster.Submit("", spec).status().message(), HasSubstr("training.steps"));
  EXPECT_TRUE(absl::IsInvalidArgument(cluster.Submit("", SmallJob(8)).status()))
      << "more stages than layers";
  ASSERT_TRUE(cluster.files().MakeFolders("/checkpoints/old/step-000000000001").ok());
  cluster.Submit("", SmallJob(2)).value();
  EXPECT_TRUE(absl::IsResourceExhausted(cluster.Submit("", SmallJob(2)).status()));
  EXPECT_TRUE(absl::IsNotFound(cluster.loop().Get("nobody").status()));
  EXPECT_TRUE(absl::IsNotFound(cluster.Cancel("nobody")));
}

TEST(JobLoopTest, RefusesAnIdWhoseFolderHoldsCheckpointsOfAnUnknownJob) {
  SimulatedCluster cluster(1);
  ASSERT_TRUE(cluster.Submit("first", SmallJob(1)).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  ASSERT_TRUE(cluster.files().Rename("/checkpoints/first", "/checkpoints/other").ok());
  const absl::Status status = cluster.Submit("other", SmallJob(1)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
}

TEST(JobLoopTest, PlansForTheStagesThatAreThere) {
  SimulatedCluster cluster(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster.PlanJob(SmallJob(0)).status()));
  EXPECT_EQ(cluster.PlanJob(SmallJob(3))->partition.stages(), 3);
  cluster.AddStage(0);
  cluster.AddStage(1);
  EXPECT_EQ(cluster.PlanJob(SmallJob(0))->partition.stages(), 2);
}

TEST(JobLoopTest, PlansForTheDevicesOfTheFleet) {
  constexpr int64_t kWorkspace = int64_t{32} << 20;  // of a stage on a card
  SimulatedCluster cluster(0);
  const auto on_card = [&](int stages) {
    std::vector<bool> result;
    const absl::StatusOr<Plan> plan = cluster.PlanJob(SmallJob(stages));
    for (const StagePlan& stage : plan->stages) {
      result.push_back(stage.memory.activations > kWorkspace);
    }
    return result;
  };
  EXPECT_EQ(on_card(2), (std::vector<bool>{false, false}));
  const auto add = [&](const std::string& name, const std::string& device) {
    const StageRegistration registration{
        .name = name, .incarnation = "i", .address = "host:1", .device = device};
    EXPECT_TRUE(cluster.loop().RegisterStage(registration, {cluster.now(), 0}).ok());
  };
  add("b", "cuda:1");
  EXPECT_EQ(on_card(2), (std::vector<bool>{true, true})) << "who is to come is like who is there";
  add("a", "cpu");
  EXPECT_EQ(on_card(2), (std::vector<bool>{false, true})) << "by name";
  EXPECT_EQ(on_card(1), (std::vector<bool>{false}));
}

TEST(JobLoopTest, PlansWithWhatACardSaysOfItsAttention) {
  JobSpec spec = SmallJob(2);
  spec.model = GptSpec{.layers = 2, .width = 16, .heads = 2, .context = 4096, .vocabulary = 8};
  spec.precision = Precision::kBfloat16;
  SimulatedCluster cluster(0);
  const auto activations = [&](const std::string& incarnation,
                               const std::optional<CardProfile>& card) {
    const StageRegistration registration{.name = "a",
                                         .incarnation = incarnation,
                                         .address = "host:1",
                                         .device = "cuda:0",
                                         .identity = "a",
                                         .card = card};
    EXPECT_TRUE(cluster.loop().RegisterStage(registration, {cluster.now(), 0}).ok());
    return cluster.PlanJob(spec)->stages[0].memory.activations;
  };
  const int64_t none = activations("1", CardProfile{});
  constexpr int64_t kMatrices = 2 * 2 * (2 * 4096 * 4096);  // of two sequences and two heads
  EXPECT_EQ(activations("2", std::nullopt) - none, kMatrices) << "an older stage may have cuDNN";
  const AttentionKernels fused = {.name = "fused",
                                  .precisions = {Precision::kBfloat16},
                                  .widest_head = 8,
                                  .score_bytes = int64_t{256} << 20};
  EXPECT_EQ(activations("3", CardProfile{.attention = fused}) - none, kMatrices);
}

TEST(JobLoopTest, WatchesFromAnyRecordOnAndEndsWithTheJob) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  std::vector<uint64_t> seen, few;
  std::optional<absl::Status> ended, left;
  cluster.loop().Watch(
      900, kJob, 5,
      [&](const JobRecord& record) {
        seen.push_back(record.number);
        return true;
      },
      [&](const absl::Status& status) { ended = status; });
  cluster.loop().Watch(
      901, kJob, 0,
      [&](const JobRecord& record) {
        few.push_back(record.number);
        return few.size() < 2;
      },
      [&](const absl::Status& status) { left = status; });
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  ASSERT_TRUE(cluster.RunUntil([&] { return ended.has_value(); }));
  EXPECT_TRUE(ended->ok());
  EXPECT_EQ(seen.front(), 6u);
  EXPECT_EQ(seen.back(), cluster.Records(kJob).back().number);
  EXPECT_THAT(few, ElementsAre(1, 2));
  EXPECT_FALSE(left.has_value()) << "who leaves is not called again";

  std::optional<absl::Status> unknown, late;
  cluster.loop().Watch(902, "nobody", 0, nullptr, [&](const absl::Status& s) { unknown = s; });
  EXPECT_TRUE(absl::IsNotFound(*unknown));
  cluster.loop().Watch(903, kJob, 10000, nullptr, [&](const absl::Status& s) { late = s; });
  EXPECT_TRUE(late->ok()) << "there is nothing more to come";
}

// The end of a job, and everything shown of it, outlives the coordinator.
TEST(JobLoopTest, RemembersEndedJobs) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  const JobView before = cluster.View(kJob);
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  const JobView after = cluster.View(kJob);
  EXPECT_EQ(after.phase, JobPhase::kSucceeded);
  EXPECT_EQ(after.weights_digest, before.weights_digest);
  EXPECT_EQ(after.weights_folder, before.weights_folder);
  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(after.evaluation_loss, before.evaluation_loss);
  EXPECT_EQ(after.step, before.step);
  EXPECT_EQ(after.last_checkpoint_step, before.last_checkpoint_step);
  EXPECT_EQ(after.submitted_unix_seconds, before.submitted_unix_seconds);
  EXPECT_EQ(after.finished_unix_seconds, before.finished_unix_seconds);
  EXPECT_EQ(after.stages.size(), before.stages.size());
}

// Many faults in one run, by seed. All of them heal, so the job must end, with the same bits.
TEST(JobLoopTest, EndsWithTheSameBitsUnderRandomFaults) {
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
