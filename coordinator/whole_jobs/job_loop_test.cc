// Whole jobs on a simulated cluster: what users are promised while nothing fails.
#include "coordinator/loop/job_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(JobLoopTest, RunsAJobToItsEndAndTellsAllOfIt) {
  TestCluster cluster(2);
  cluster.Start().ExpectGoldenEnd();
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
  EXPECT_THAT(cluster.Saved(), ElementsAre("LATEST", "step-000000000006", "step-000000000007"));
  for (const StageView& stage : cluster.loop().ListStages()) {
    EXPECT_EQ(stage.state, StageState::kReady) << "the stages are free again";
  }

  // The end of a job, and everything shown of it, outlives the coordinator.
  cluster.RestartCoordinator();
  const JobView after = cluster.View(kJob);
  EXPECT_EQ(after.phase, JobPhase::kSucceeded);
  EXPECT_EQ(after.weights_digest, view.weights_digest);
  EXPECT_EQ(after.weights_folder, view.weights_folder);
  EXPECT_EQ(after.loss, view.loss);
  EXPECT_EQ(after.evaluation_loss, view.evaluation_loss);
  EXPECT_EQ(after.step, view.step);
  EXPECT_EQ(after.last_checkpoint_step, view.last_checkpoint_step);
  EXPECT_EQ(after.submitted_unix_seconds, view.submitted_unix_seconds);
  EXPECT_EQ(after.finished_unix_seconds, view.finished_unix_seconds);
  EXPECT_EQ(after.stages.size(), view.stages.size());
}

TEST(JobLoopTest, GivesTheSameBitsForEveryNumberOfStages) {
  for (int stages : {1, 3, 4, 7}) {
    TestCluster cluster(stages);
    cluster.Start(SmallJob(stages)).ExpectGoldenEnd(absl::StrCat(stages, " stages"));
  }
}

TEST(JobLoopTest, SaysWhatAQueuedJobWaitsForAndFailsIfTheStagesNeverCome) {
  TestCluster cluster(1);
  EXPECT_EQ(cluster.Start().Message(), "waits for 2 stages, 1 is ready, 1 is alive");
  EXPECT_EQ(cluster.Phase(), JobPhase::kSubmitted);
  EXPECT_THAT(cluster.Failure(kJob, 25), HasSubstr("1 stage is missing after 20.0 s"));
}

TEST(JobLoopTest, KeepsTheQueueInOrderAndRunsJobsOnDisjointStages) {
  TestCluster cluster(4);
  cluster.Start(SmallJob(2), "a")
      .Start(SmallJob(2), "b")
      .Start(SmallJob(4), "c")
      .Start(SmallJob(1), "d");
  EXPECT_EQ(cluster.Phase("a"), JobPhase::kLoading);
  EXPECT_EQ(cluster.Phase("b"), JobPhase::kLoading);
  EXPECT_EQ(cluster.Message("c"),
            "waits for 4 stages, 0 are ready, 4 are alive, the others work for other jobs, are "
            "about to end or do not answer");
  cluster.Digest("c");  // never starved by the smaller d
  for (const char* id : {"a", "b", "c", "d"}) cluster.ExpectGoldenEnd(id, id);
}

// An automatic job began on the one stage that had come up first, and stayed there.
TEST(JobLoopTest, AnAutoJobWaitsUntilAsManyStagesAreFreeAsItAskedFor) {
  TestCluster cluster(1);
  JobSpec spec = SmallJob(0);
  spec.pipeline.min_stages = 2;
  EXPECT_EQ(cluster.Start(spec).Message(), "waits for 2 stages, 1 is ready, 1 is alive");
  EXPECT_THAT(std::string(cluster.PlanJob(spec).status().message()),
              HasSubstr("at least 2, and 1 is registered"));
  cluster.AddStage(1);
  cluster.AddStage(2);  // too late for this job: it took what was free and enough
  EXPECT_EQ(cluster.PlanJob(SmallJob(0))->partition.stages(), 1) << "for what is free";
  cluster.ExpectGoldenEnd();
  EXPECT_EQ(cluster.View(kJob).stages.size(), 2u);
}

TEST(JobLoopTest, MeasuresLayersOnceForAnAutomaticPartitionAndDoesWithoutIfThatFails) {
  for (const bool works : {true, false}) {
    TestCluster cluster(2);
    if (!works) cluster.profile_error = absl::InternalError("no clock");
    JobSpec spec = SmallJob(2);
    spec.pipeline.partition.kind = PartitionSpec::Kind::kAuto;
    cluster.Start(spec).UntilStep(4).ReplaceStage(1);
    cluster.ExpectGoldenEnd();
    EXPECT_EQ(cluster.profiles, 1) << "also over a recovery";
    EXPECT_EQ(cluster.History().find("costs come from the cost model") != std::string::npos,
              !works);
  }
}

TEST(JobLoopTest, AcceptsARepeatedSubmissionOnce) {
  TestCluster cluster(2);
  for (int i = 0; i < 100; ++i) cluster.Start();
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
  TestCluster cluster(2, options);
  JobSpec spec = SmallJob(2);
  EXPECT_TRUE(absl::IsInvalidArgument(cluster.Submit("Bad_Id", spec).status()));
  spec.training.steps = -1;
  EXPECT_THAT(cluster.Submit("", spec).status().message(), HasSubstr("training.steps"));
  EXPECT_TRUE(absl::IsInvalidArgument(cluster.Submit("", SmallJob(8)).status()))
      << "more stages than layers";
  cluster.Start(SmallJob(2), "");
  EXPECT_TRUE(absl::IsResourceExhausted(cluster.Submit("", SmallJob(2)).status()));
  EXPECT_TRUE(absl::IsNotFound(cluster.loop().Get("nobody").status()));
  EXPECT_TRUE(absl::IsNotFound(cluster.Cancel("nobody")));
}

StageRegistration OnDevice(const std::string& name, const std::string& incarnation,
                           const std::string& device, const CardProfile& card = {}) {
  StageRegistration stage{
      .name = name, .incarnation = incarnation, .address = "host:1", .device = device};
  stage.identity = name;
  if (device != "cpu") stage.card = card;
  return stage;
}

TEST(JobLoopTest, PlansForTheStagesThatAreThereAndTheirDevices) {
  TestCluster cluster(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster.PlanJob(SmallJob(0)).status()));
  constexpr int64_t kWorkspace = int64_t{32} << 20;  // of a stage on a card
  const auto on_card = [&](int stages) {
    std::vector<bool> result;
    const absl::StatusOr<Plan> plan = cluster.PlanJob(SmallJob(stages));
    for (const StagePlan& stage : plan->stages) {
      result.push_back(stage.memory.activations > kWorkspace);
    }
    return result;
  };
  const auto add = [&](const StageRegistration& stage) {
    EXPECT_TRUE(cluster.loop().RegisterStage(stage, {cluster.now(), 0}).ok());
  };
  EXPECT_THAT(on_card(3), ElementsAre(false, false, false));
  add(OnDevice("b", "i", "cuda:1"));
  EXPECT_THAT(on_card(2), ElementsAre(true, true)) << "who is to come is like who is there";
  add(OnDevice("a", "i", "cpu"));
  EXPECT_THAT(on_card(2), ElementsAre(false, true)) << "by name";
  EXPECT_THAT(on_card(1), ElementsAre(false));
  EXPECT_EQ(on_card(0).size(), 2u) << "all there are";
}

TEST(JobLoopTest, PlansWithWhatACardSaysOfItsAttention) {
  JobSpec spec = SmallJob(2);
  spec.network = GptSpec{.layers = 2, .width = 16, .heads = 2, .context = 4096, .vocabulary = 8};
  spec.precision = Precision::kBfloat16;
  TestCluster cluster(0);
  const auto activations = [&](const std::string& incarnation, const CardProfile& card) {
    const StageRegistration stage = OnDevice("a", incarnation, "cuda:0", card);
    EXPECT_TRUE(cluster.loop().RegisterStage(stage, {cluster.now(), 0}).ok());
    return cluster.PlanJob(spec)->stages[0].memory.activations;
  };
  const int64_t none = activations("1", CardProfile{});
  constexpr int64_t kMatrices = 2 * 2 * (2 * 4096 * 4096);  // of two sequences and two heads
  const AttentionKernels fused = {.name = "fused",
                                  .precisions = {Precision::kBfloat16},
                                  .widest_head = 8,
                                  .score_bytes = int64_t{256} << 20};
  EXPECT_EQ(activations("2", CardProfile{.attention = fused}) - none, kMatrices);
}

// Symptom: a missing kernel was found when a stage loaded its layers, after all other work of the
// start.
TEST(JobLoopTest, AJobIsRefusedWhereAStageHasNoKernelForItsLayers) {
  TestCluster cluster(0);
  StageRegistration stage = OnDevice("a", "i", "cuda:0");
  stage.without_kernels = {"max_pool"};
  EXPECT_TRUE(cluster.loop().RegisterStage(stage, {cluster.now(), 0}).ok());
  EXPECT_TRUE(cluster.PlanJob(SmallJob(1)).ok()) << "no layer needs it";
  stage.incarnation = "j";
  stage.without_kernels = {"linear"};
  EXPECT_TRUE(cluster.loop().RegisterStage(stage, {cluster.now(), 0}).ok());
  for (const int stages : {1, 2}) {
    const absl::Status status = cluster.PlanJob(SmallJob(stages)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(),
                testing::AllOf(HasSubstr("stage 0 (a, device cuda:0) has no kernel for operation "
                                         "\"linear\" of layer "),
                               HasSubstr("use stages with another device")));
  }
  EXPECT_THAT(cluster.Start(SmallJob(1)).Failure(),
              HasSubstr("has no kernel for operation \"linear\""));
}

TEST(JobLoopTest, WatchesFromAnyRecordOnAndEndsWithTheJob) {
  TestCluster cluster(2);
  cluster.Start();
  std::vector<uint64_t> seen, few;
  std::optional<absl::Status> ended, left, unknown, late;
  const auto watch = [&](uint64_t watch_id, const std::string& id, uint64_t after, size_t most,
                         std::vector<uint64_t>& numbers, std::optional<absl::Status>& end) {
    cluster.loop().Watch(
        watch_id, id, after,
        [&numbers, most](const JobRecord& record) {
          numbers.push_back(record.number);
          return numbers.size() < most;
        },
        [&end](const absl::Status& status) { end = status; });
  };
  watch(900, kJob, 5, 1000, seen, ended);
  watch(901, kJob, 0, 2, few, left);
  cluster.Digest();
  ASSERT_TRUE(cluster.RunUntil([&] { return ended.has_value(); }));
  EXPECT_TRUE(ended->ok());
  EXPECT_EQ(seen.front(), 6u);
  EXPECT_EQ(seen.back(), cluster.Records(kJob).back().number);
  EXPECT_THAT(few, ElementsAre(1, 2));
  EXPECT_FALSE(left.has_value()) << "who leaves is not called again";

  std::vector<uint64_t> none;
  watch(902, "nobody", 0, 1, none, unknown);
  EXPECT_TRUE(absl::IsNotFound(*unknown));
  watch(903, kJob, 10000, 1, none, late);
  EXPECT_TRUE(late->ok()) << "there is nothing more to come";
  EXPECT_THAT(none, IsEmpty());
}

}  // namespace
}  // namespace stagecoach
