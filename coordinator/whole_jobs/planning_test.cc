// Symptom: while a job of many layers and stages was checked and planned, for seconds, no answer
// and no heartbeat of any other job was heard. Cause: both happened on the job loop's thread, the
// plan even inside of the transition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PlanningTest, OthersTrainWhileAJobIsCheckedAndPlanned) {
  TestCluster cluster(4);
  cluster.Start().UntilStep(1).check_seconds = 200;
  std::optional<absl::Status> accepted, planned;
  cluster.loop().Submit("b", SmallJob(2),
                        [&](const absl::StatusOr<JobView>& view) { accepted = view.status(); });
  cluster.loop().PlanJob(SmallJob(4),
                         [&](const absl::StatusOr<Plan>& plan) { planned = plan.status(); });
  cluster.Digest(kJob, 10);
  EXPECT_FALSE(accepted.has_value() || planned.has_value()) << "they are still being planned";
  ASSERT_TRUE(cluster.RunUntil([&] { return accepted.has_value() && planned.has_value(); }));
  EXPECT_TRUE(accepted->ok()) << *accepted;
  EXPECT_TRUE(planned->ok()) << *planned;
  cluster.Until([](const JobView& view) { return IsTerminal(view.phase); }, 1000, "b");
  EXPECT_EQ(cluster.View("b").weights_digest, Golden().outcome.digest);
  for (const char* id : {kJob, "b"}) EXPECT_EQ(cluster.View(id).recoveries, 0u);
}

TEST(PlanningTest, AStageLostMeanwhileIsReplacedAndThePlanMadeAgain) {
  TestCluster cluster(3);
  cluster.Start().plan_seconds = 5;  // the next one takes so long
  cluster.ReplaceStage(0);
  cluster.UntilPhase(JobPhase::kPlanned).KillStage(1);
  cluster.ExpectGoldenEnd();
}

TEST(PlanningTest, EndsByNameIfThePlanNeverComes) {
  TestCluster cluster(2);
  bool accepted = false;
  cluster.loop().Submit(kJob, SmallJob(2), [&](const absl::StatusOr<JobView>&) {
    accepted = true;
    cluster.plan_seconds = 1e6;
  });
  ASSERT_TRUE(cluster.RunUntil([&] { return accepted; }));
  cluster.UntilPhase(JobPhase::kFailed);
  EXPECT_THAT(cluster.Message(), HasSubstr("the layers were not divided within 600 s"));
}

// One user's 64 plans, seconds each, were in front of everybody's submissions, and went on when
// their callers had gone.
TEST(PlanningTest, UsersTakeTurns) {
  TestCluster cluster(1);
  cluster.check_seconds = 10;
  int planned = 0, given_up = 0;
  bool wanted = true;
  for (int i = 0; i < 20; ++i) {
    cluster.loop().PlanJob(
        SmallJob(1),
        [&](const absl::StatusOr<Plan>& plan) {
          ++planned;
          given_up += absl::IsCancelled(plan.status()) ? 1 : 0;
        },
        [&wanted] { return wanted; }, {"user/ann", true});
  }
  const absl::Status accepted = cluster.Submit("b", SmallJob(1), {"user/bob", true}).status();
  EXPECT_TRUE(accepted.ok()) << accepted;
  EXPECT_LE(planned, 2) << "the one that was being made, and one more";
  EXPECT_EQ(given_up, 0);
  wanted = false;
  ASSERT_TRUE(cluster.RunUntil([&] { return planned == 20; }));
  EXPECT_GE(given_up, 17);
}

// Plans that clients asked for stood in one queue before those of jobs: a recovery waited for them.
TEST(PlanningTest, ARecoveryDoesNotWaitForWhatClientsAskFor) {
  TestCluster cluster(2);
  cluster.Start().UntilStep(4).check_seconds = 500;
  cluster.plan_seconds = 0.1;
  bool planned = false;
  for (int i = 0; i < 2; ++i) {
    cluster.loop().PlanJob(SmallJob(2), [&](const absl::StatusOr<Plan>&) { planned = true; });
  }
  cluster.ReplaceStage(1);
  cluster.Digest(kJob, 10);
  EXPECT_FALSE(planned) << "it is still being made";
}

// One such request kept the planner's thread for minutes and took gigabytes.
TEST(PlanningTest, RefusesAPlanOfTooManyMicroBatchesByName) {
  TestCluster cluster(17);
  JobSpec spec = SmallJob(17);
  spec.network.attributes.Set("layers", int64_t{16});
  spec.training.micro_batches = spec.training.batch_size = 15420;
  EXPECT_TRUE(CheckPlanSize(spec, 17).ok());
  spec.training.micro_batches = spec.training.batch_size = 65536;
  const auto refused =
      AllOf(HasSubstr("training.micro_batches"), HasSubstr("65536"),
            HasSubstr("with pipeline.stages=17 at most 15420"), HasSubstr("262144"));
  for (const absl::Status& status :
       {cluster.PlanJob(spec).status(), cluster.Submit("", spec).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), refused);
  }
  spec.pipeline.stages = 0;  // how many it will be is known only when it is placed
  EXPECT_THAT(cluster.Start(spec).Failure(), refused);
}

TEST(PlanningTest, RefusesMoreThanItCanPlan) {
  TestCluster cluster(0);
  cluster.check_seconds = 1;
  int planned = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    cluster.loop().PlanJob(SmallJob(2), [&](const absl::StatusOr<Plan>& plan) {
      plan.ok() ? ++planned : ++refused;
      EXPECT_TRUE(plan.ok() || absl::IsResourceExhausted(plan.status())) << plan.status();
    });
  }
  EXPECT_GT(refused, 0);
  ASSERT_TRUE(cluster.RunUntil([&] { return planned + refused == 300; }));
  EXPECT_TRUE(cluster.PlanJob(SmallJob(2)).ok()) << "there is room again";
}

}  // namespace
}  // namespace stagecoach
