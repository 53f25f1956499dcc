// Symptom: a stage that knew a job's id, owner and time of submission, all of which the page shows,
// could fetch the job's weights from the memory of its stages. Cause: the key of its snapshots was
// made of nothing else.
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

std::string KeyOfSnapshots(TestCluster& cluster) {
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.stage(0).loaded; }));
  return cluster.stage(0).command.snapshot.key;
}

TEST(SnapshotKeyTest, IsNotMadeOfWhatOthersKnowAndStaysWhenTheCoordinatorIsStartedAgain) {
  TestCluster cluster(2), other(2);
  const std::string before = KeyOfSnapshots(cluster.Start());
  EXPECT_NE(before, KeyOfSnapshots(other.Start()));
  const uint64_t generation = cluster.UntilStep(2).stage(0).command.fence.generation;
  cluster.RestartCoordinator();
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.stage(0).command.fence.generation != generation; }));
  EXPECT_EQ(KeyOfSnapshots(cluster), before);
}

}  // namespace
}  // namespace stagecoach
