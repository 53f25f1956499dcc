// Whole jobs on a simulated cluster: what users are promised, and faults at every single event.
#include "coordinator/loop/job_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coordinator/testing/simulated_cluster.h"
#include "coordinator/whole_jobs/golden_job_testing.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
            "waits for 4 stages, 0 are ready, 4 are alive, the others work for other jobs, are "
            "about to end or do not answer");
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
    StageRegistration registration{
        .name = name, .incarnation = "i", .address = "host:1", .device = device};
    if (device != "cpu") registration.card = CardProfile{};
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
  const AttentionKernels fused = {.name = "fused",
                                  .precisions = {Precision::kBfloat16},
                                  .widest_head = 8,
                                  .score_bytes = int64_t{256} << 20};
  EXPECT_EQ(activations("2", CardProfile{.attention = fused}) - none, kMatrices);
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

}  // namespace
}  // namespace stagecoach
