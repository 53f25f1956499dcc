// Symptom: after a stage's restart its job recovered one to three times more than needed. Cause: what
// was known of the connection to its address was of the process that had died.
#include <gtest/gtest.h>

#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

TEST(ReconnectTest, EveryRegistrationMakesAnewTheConnectionToItsAddress) {
  SimulatedCluster cluster(2);
  EXPECT_EQ(cluster.reconnects,
            (std::map<std::string, int>{{"host-0:8101", 1}, {"host-1:8101", 1}}));
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 4; }));
  cluster.KillStage(1);
  cluster.RestartStage(1);
  EXPECT_EQ(cluster.reconnects,
            (std::map<std::string, int>{{"host-0:8101", 1}, {"host-1:8101", 2}}));
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded);
}

}  // namespace
}  // namespace stagecoach
