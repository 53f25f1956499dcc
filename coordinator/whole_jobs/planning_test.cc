// Symptom: while a job of many layers and stages was checked and planned, for seconds, no answer and
// no heartbeat of any other job was heard. Cause: both happened on the job loop's thread, the plan
// even inside of the transition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/testing/simulated_cluster.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlanningTest, OthersTrainWhileAJobIsCheckedAndPlanned) {
  SimulatedCluster cluster(4);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 1; }));
  cluster.check_seconds = 200;
  std::optional<absl::Status> accepted, planned;
  cluster.loop().Submit("b", SmallJob(2),
                        [&](const absl::StatusOr<JobView>& view) { accepted = view.status(); });
  cluster.loop().PlanJob(SmallJob(4),
                         [&](const absl::StatusOr<Plan>& plan) { planned = plan.status(); });
  ASSERT_TRUE(cluster.RunToEnd("a", 10));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded) << cluster.View("a").message;
  EXPECT_EQ(cluster.View("a").recoveries, 0u);
  EXPECT_FALSE(accepted.has_value() || planned.has_value()) << "they are still being planned";
  ASSERT_TRUE(cluster.RunUntil([&] { return accepted.has_value() && planned.has_value(); }));
  EXPECT_TRUE(accepted->ok()) << *accepted;
  EXPECT_TRUE(planned->ok()) << *planned;
  ASSERT_TRUE(cluster.RunUntil([&] { return IsTerminal(cluster.View("b").phase); }));
  EXPECT_EQ(cluster.View("b").weights_digest, cluster.View("a").weights_digest);
  EXPECT_EQ(cluster.View("b").recoveries, 0u);
  EXPECT_THAT(cluster.violations, IsEmpty());
}

TEST(PlanningTest, AStageLostMeanwhileIsReplacedAndThePlanMadeAgain) {
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit("undisturbed", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd("undisturbed"));
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  cluster.plan_seconds = 5;  // the next one takes so long
  cluster.KillStage(0);
  cluster.RestartStage(0);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").phase == JobPhase::kPlanned; }));
  cluster.KillStage(1);
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded) << cluster.View("a").message;
  EXPECT_EQ(cluster.View("a").weights_digest, cluster.View("undisturbed").weights_digest);
  EXPECT_THAT(cluster.violations, IsEmpty());
}

TEST(PlanningTest, EndsByNameIfThePlanNeverComes) {
  SimulatedCluster cluster(2);
  std::optional<absl::Status> accepted;
  cluster.loop().Submit("a", SmallJob(2), [&](const absl::StatusOr<JobView>& view) {
    accepted = view.status();
    cluster.plan_seconds = 1e6;
  });
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return accepted.has_value() && IsTerminal(cluster.View("a").phase); }));
  EXPECT_THAT(cluster.View("a").message, HasSubstr("the layers were not divided within 600 s"));
}

// One user's 64 plans, seconds each, were in front of everybody's submissions, and went on when their callers had gone.
TEST(PlanningTest, UsersTakeTurns) {
  SimulatedCluster cluster(1);
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
  std::optional<absl::Status> accepted;
  cluster.loop().Submit("b", SmallJob(1),
                        [&](const absl::StatusOr<JobView>& view) { accepted = view.status(); },
                        nullptr, {"user/bob", true});
  ASSERT_TRUE(cluster.RunUntil([&] { return accepted.has_value(); }));
  EXPECT_TRUE(accepted->ok()) << *accepted;
  EXPECT_LE(planned, 2) << "the one that was being made, and one more";
  EXPECT_EQ(given_up, 0);
  wanted = false;
  ASSERT_TRUE(cluster.RunUntil([&] { return planned == 20; }));
  EXPECT_GE(given_up, 17);
}

// Plans that clients asked for stood in one queue before those of jobs: a recovery waited for them.
TEST(PlanningTest, ARecoveryDoesNotWaitForWhatClientsAskFor) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 4; }));
  cluster.check_seconds = 500;
  cluster.plan_seconds = 0.1;
  std::optional<absl::Status> planned;
  for (int i = 0; i < 2; ++i) {
    cluster.loop().PlanJob(SmallJob(2),
                           [&](const absl::StatusOr<Plan>& plan) { planned = plan.status(); });
  }
  cluster.KillStage(1);
  cluster.RestartStage(1);
  ASSERT_TRUE(cluster.RunToEnd("a", 10)) << cluster.View("a").message;
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded) << cluster.View("a").message;
  EXPECT_FALSE(planned.has_value()) << "it is still being made";
}

// One such request kept the planner's thread for minutes and took gigabytes.
TEST(PlanningTest, RefusesAPlanOfTooManyMicroBatchesByName) {
  SimulatedCluster cluster(17);
  JobSpec spec = SmallJob(17);
  spec.model.attributes.Set("layers", int64_t{16});
  spec.training.micro_batches = spec.training.batch_size = 15420;
  EXPECT_TRUE(CheckPlanSize(spec, 17).ok());
  spec.training.micro_batches = spec.training.batch_size = 65536;
  const auto refused =
      AllOf(HasSubstr("training.micro_batches"), HasSubstr("65536"),
            HasSubstr("with pipeline.stages=17 at most 15420"), HasSubstr("262144"));
  const absl::Status planned = cluster.PlanJob(spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(planned)) << planned;
  EXPECT_THAT(planned.message(), refused);
  const absl::Status submitted = cluster.Submit("a", spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(submitted)) << submitted;
  EXPECT_THAT(submitted.message(), refused);
  spec.pipeline.stages = 0;  // how many it will be is known only when it is placed
  ASSERT_TRUE(cluster.Submit("a", spec).ok());
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kFailed);
  EXPECT_THAT(cluster.View("a").message, refused);
}

TEST(PlanningTest, RefusesMoreThanItCanPlan) {
  SimulatedCluster cluster(0);
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
