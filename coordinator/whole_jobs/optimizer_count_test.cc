// How many updates an optimizer has seen, over skipped steps, recoveries and resumes.
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/testing/simulated_cluster.h"
#include "gtest/gtest.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

constexpr char kCountedJob[] = "small-1";

// Seen: AdamW's bias correction counted skipped steps as well, which PyTorch's does not, so that a job
// with a skipped step went another way than the same steps there.
TEST(OptimizerCountTest, TheOptimizerCountsAppliedStepsAlsoAfterARecoveryOnOtherStages) {
  const std::map<uint64_t, std::set<uint64_t>> expected = {
      {0, {0}}, {2, {1}}, {3, {2}}, {5, {3}}, {6, {4}}};
  for (const bool kill : {false, true}) {
    SimulatedCluster cluster(3);
    cluster.nonfinite_steps = {1, 4};
    JobSpec spec = SmallJob(3);
    spec.pipeline.continue_with_fewer_stages = true;
    ASSERT_TRUE(cluster.Submit(kCountedJob, spec).ok());
    if (kill) {
      cluster.RunUntil([&] { return cluster.View(kCountedJob).step == 5; });
      cluster.KillStage(0);
    }
    ASSERT_TRUE(cluster.RunToEnd(kCountedJob));
    ASSERT_EQ(cluster.View(kCountedJob).phase, JobPhase::kSucceeded)
        << cluster.View(kCountedJob).message;
    EXPECT_EQ(cluster.View(kCountedJob).stages.size(), kill ? 2u : 3u);
    EXPECT_EQ(cluster.optimizer_steps[kCountedJob], expected) << kill;
  }
}

TEST(OptimizerCountTest, TheOptimizersCountGoesOnInAJobThatResumesAnother) {
  SimulatedCluster cluster(2);
  cluster.nonfinite_steps = {1};
  JobSpec first = SmallJob(2);
  first.training.steps = 3;
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  JobSpec second = SmallJob(2);
  second.resume_job = "first";
  second.training.steps = 5;
  ASSERT_TRUE(cluster.Submit(kCountedJob, second).ok());
  ASSERT_TRUE(cluster.RunToEnd(kCountedJob));
  const std::map<uint64_t, std::set<uint64_t>> expected = {{3, {2}}, {4, {3}}};
  EXPECT_EQ(cluster.optimizer_steps[kCountedJob], expected);
}

TEST(OptimizerCountTest, ResumesWithAnotherOptimizerWhereTheJobStartsItsStateAnew) {
  SimulatedCluster cluster(2);
  JobSpec first = SmallJob(2);
  first.training.steps = 4;
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  JobSpec second = SmallJob(2);
  second.training.optimizer = SgdSpec{.momentum = 0.9};
  second.training.steps = 9;
  second.resume_job = "first";
  second.resume_fresh_optimizer = true;
  std::string undisturbed;
  // One recovery before the job's first own checkpoint, at step 6, and one after it.
  for (const uint64_t kill_at : {0, 5, 8}) {
    const std::string id = absl::StrCat("second-", kill_at);
    ASSERT_TRUE(cluster.Submit(id, second).ok());
    if (kill_at > 0) {
      cluster.RunUntil([&] { return cluster.View(id).step == kill_at; });
      cluster.KillStage(1);
      cluster.RestartStage(1);
    }
    ASSERT_TRUE(cluster.RunToEnd(id));
    ASSERT_EQ(cluster.View(id).phase, JobPhase::kSucceeded) << cluster.View(id).message;
    const std::map<uint64_t, std::set<uint64_t>> expected = {
        {4, {0}}, {5, {1}}, {6, {2}}, {7, {3}}, {8, {4}}};
    EXPECT_EQ(cluster.optimizer_steps[id], expected) << "its state began at step 4";
    if (kill_at == 0) undisturbed = cluster.View(id).weights_digest;
    EXPECT_EQ(cluster.View(id).weights_digest, undisturbed) << kill_at;
  }
  // Whoever goes on from it has its count, too.
  JobSpec third = second;
  third.training.steps = 10;
  third.resume_job = "second-0";
  third.resume_fresh_optimizer = false;
  ASSERT_TRUE(cluster.Submit("third", third).ok());
  ASSERT_TRUE(cluster.RunToEnd("third"));
  const std::map<uint64_t, std::set<uint64_t>> expected = {{9, {5}}};
  EXPECT_EQ(cluster.optimizer_steps["third"], expected) << cluster.View("third").message;
}

}  // namespace
}  // namespace stagecoach
