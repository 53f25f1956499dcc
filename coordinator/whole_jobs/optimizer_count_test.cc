// How many updates an optimizer has seen, over skipped steps, recoveries and resumes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "coordinator/whole_jobs/test_cluster_testing.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using Counts = std::map<uint64_t, std::set<uint64_t>>;  // updates before a step, by step

// Seen: AdamW's bias correction counted skipped steps as well, which PyTorch's does not, so that a
// job with a skipped step went another way than the same steps there.
TEST(OptimizerCountTest, TheOptimizerCountsAppliedStepsAlsoAfterARecoveryOnOtherStages) {
  std::string undisturbed;
  for (const bool kill : {false, true}) {
    TestCluster cluster(3);
    cluster.nonfinite_steps = {1, 4};
    JobSpec spec = SmallJob(3);
    spec.pipeline.continue_with_fewer_stages = true;
    cluster.Start(spec);
    if (kill) cluster.UntilStep(5).KillStage(0);
    const std::string digest = cluster.Digest();
    if (!kill) undisturbed = digest;
    EXPECT_EQ(digest, undisturbed);
    EXPECT_NE(digest, Golden().outcome.digest);
    EXPECT_EQ(cluster.View(kJob).stages.size(), kill ? 2u : 3u);
    EXPECT_EQ(cluster.View(kJob).skipped_steps, 2u);
    EXPECT_EQ(cluster.optimizer_steps[kJob],
              (Counts{{0, {0}}, {2, {1}}, {3, {2}}, {5, {3}}, {6, {4}}}))
        << kill;
    const auto skipped = [](const JobRecord& record) { return record.skipped; };
    EXPECT_EQ(std::ranges::count_if(cluster.Records(kJob), skipped), kill ? 3 : 2)
        << "again after it";
  }
}

TEST(OptimizerCountTest, ResumesWithAnotherOptimizerWhereTheJobStartsItsStateAnew) {
  TestCluster cluster(2);
  JobSpec first = SmallJob(2);
  first.training.steps = 4;
  cluster.Start(first, "first").Digest("first");
  JobSpec second = SmallJob(2);
  second.training.optimizer = SgdSpec{.momentum = 0.9};
  second.training.steps = 9;
  second.resume.job = "first";
  second.resume.fresh_optimizer = true;
  std::string undisturbed;
  // One recovery before the job's first own checkpoint, at step 6, and one after it.
  for (const uint64_t kill_at : {0, 5, 8}) {
    const std::string id = absl::StrCat("second-", kill_at);
    cluster.Start(second, id);
    if (kill_at > 0) cluster.UntilStep(kill_at, id).ReplaceStage(1);
    const std::string digest = cluster.Digest(id);
    if (kill_at == 0) undisturbed = digest;
    EXPECT_EQ(digest, undisturbed) << kill_at;
    EXPECT_EQ(cluster.optimizer_steps[id],
              (Counts{{4, {0}}, {5, {1}}, {6, {2}}, {7, {3}}, {8, {4}}}))
        << "its state began at step 4";
  }
  // Whoever goes on from it has its count, too.
  second.training.steps = 10;
  second.resume.job = "second-0";
  second.resume.fresh_optimizer = false;
  cluster.Start(second, "third").Digest("third");
  EXPECT_EQ(cluster.optimizer_steps["third"], (Counts{{9, {5}}}));
}

}  // namespace
}  // namespace stagecoach
