// Jobs that begin with a file of weights: every load before their first checkpoint reads the same one.
#include <string>

#include "coordinator/testing/simulated_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kTunedJob[] = "small-1";

// Its first checkpoint is of step 3.
JobSpec JobWithWeights() {
  JobSpec spec = SmallJob(2);
  spec.initialize.from = "/weights/trunk.safetensors";
  return spec;
}

void EditWeights(SimulatedCluster& cluster) {
  for (const int k : {0, 1}) cluster.stage(k).weights_sha256 = "edited";
}

TEST(InitialWeightsTest, AJobTellsWhatItBeginsWith) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kTunedJob, JobWithWeights()).ok());
  ASSERT_TRUE(cluster.RunToEnd(kTunedJob));
  EXPECT_EQ(cluster.View(kTunedJob).phase, JobPhase::kSucceeded);
  int told = 0;
  for (const JobRecord& record : cluster.Records(kTunedJob)) {
    told += record.message == "begins with the weights of /weights/trunk.safetensors" ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

TEST(InitialWeightsTest, StagesThatReadDifferentFilesEndTheJobByName) {
  SimulatedCluster cluster(2);
  cluster.stage(1).weights_sha256 = "other";
  ASSERT_TRUE(cluster.Submit(kTunedJob, JobWithWeights()).ok());
  ASSERT_TRUE(cluster.RunToEnd(kTunedJob));
  EXPECT_EQ(cluster.View(kTunedJob).phase, JobPhase::kFailed);
  EXPECT_THAT(
      cluster.View(kTunedJob).message,
      AllOf(HasSubstr("initialize.from = \"/weights/trunk.safetensors\": "),
            HasSubstr("read different files: sha256 "), HasSubstr("use the same file everywhere")));
}

TEST(InitialWeightsTest, AFileThatChangesEndsTheJobUntilItHasACheckpoint) {
  for (const uint64_t step : {2u, 4u}) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kTunedJob, JobWithWeights()).ok());
    cluster.RunUntil([&] { return cluster.View(kTunedJob).step == step; });
    cluster.KillStage(1);
    EditWeights(cluster);
    cluster.RestartStage(1);
    ASSERT_TRUE(cluster.RunToEnd(kTunedJob));
    const JobView view = cluster.View(kTunedJob);
    EXPECT_EQ(view.phase, step < 3 ? JobPhase::kFailed : JobPhase::kSucceeded) << view.message;
    EXPECT_EQ(view.message.find("the file of weights changed") != std::string::npos, step < 3);
  }
}

TEST(InitialWeightsTest, ARestartedCoordinatorKnowsWhichFileItWas) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kTunedJob, JobWithWeights()).ok());
  cluster.RunUntil([&] { return cluster.View(kTunedJob).step == 2; });
  cluster.CrashCoordinator();
  EditWeights(cluster);
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.RunToEnd(kTunedJob));
  EXPECT_THAT(cluster.View(kTunedJob).message, HasSubstr("the file of weights changed"));
}

}  // namespace
}  // namespace stagecoach
