// Symptom: a stage that knew a job's id, owner and time of submission, all of which the page shows, could fetch the job's weights from
// the memory of its stages. Cause: the key of its snapshots was made of nothing else.
#include <gtest/gtest.h>

#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

std::string KeyOfSnapshots(SimulatedCluster& cluster) {
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.stage(0).loaded; }));
  return cluster.stage(0).command.snapshot.key;
}

TEST(SnapshotKeyTest, IsNotMadeOfWhatOthersKnow) {
  SimulatedCluster one(2), other(2);
  ASSERT_TRUE(one.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(other.Submit("a", SmallJob(2)).ok());
  EXPECT_NE(KeyOfSnapshots(one), KeyOfSnapshots(other));
}

TEST(SnapshotKeyTest, StaysWhenTheCoordinatorIsStartedAgain) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 2; }));
  const std::string before = KeyOfSnapshots(cluster);
  cluster.CrashCoordinator();
  const uint64_t generation = cluster.stage(0).command.fence.generation;
  cluster.StartCoordinator();
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.stage(0).command.fence.generation != generation; }));
  EXPECT_EQ(KeyOfSnapshots(cluster), before);
}

}  // namespace
}  // namespace stagecoach
