// Symptom: while a job of many layers and stages was checked and planned, for seconds, no answer and
// no heartbeat of any other job was heard. Cause: both happened on the job loop's thread, the plan
// even inside of the transition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/loop/simulated_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlanningTest, OthersTrainWhileAJobIsCheckedAndPlanned) {
  SimulatedCluster cluster(4);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 1; }));
  cluster.plan_seconds = 200;
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

TEST(PlanningTest, RefusesMoreThanItCanPlan) {
  SimulatedCluster cluster(0);
  cluster.plan_seconds = 1;
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
