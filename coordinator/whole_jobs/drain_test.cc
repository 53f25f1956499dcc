// A coordinator that ends in order: what it refuses, what it waits for, and that the next one goes
// on as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TEST(DrainTest, AtAnyMomentAJobEndsItsStepAndTheNextCoordinatorGoesOn) {
  for (const bool save : {false, true}) {
    AtEveryEvent(kSanitized ? 61 : 5, [save](TestCluster& cluster, int) {
      bool drained = false;
      cluster.loop().Drain(save, [&] { drained = true; });
      const double before = cluster.now();
      ASSERT_TRUE(cluster.RunUntil([&] { return drained; }, 10));
      // The step at hand, and the two batches of an evaluation that is due after it.
      EXPECT_LT(cluster.now() - before, 3.5 * SimulatedCluster::kStepSeconds);
      const JobView view = cluster.View(kJob);
      if (view.step > 0) {
        EXPECT_TRUE(OutcomeOf(cluster.Records(kJob)).losses.contains(view.step))
            << "who watches has not heard of step " << view.step;
      }
      if (save && view.phase == JobPhase::kRunning && view.step > 0) {
        EXPECT_EQ(view.last_checkpoint_step, static_cast<int64_t>(view.step));
      }
      cluster.RestartCoordinator();
      cluster.ExpectGoldenEnd(save ? "saved" : "not saved");
    });
  }
}

TEST(DrainTest, RefusesNewJobsAndPlacesNothing) {
  TestCluster cluster(0);
  cluster.Start();
  bool drained = false;
  cluster.loop().Drain(true, [&] { drained = true; });
  const absl::Status refused = cluster.Submit("small-2", SmallJob(2)).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("shutting down"));
  cluster.AddStage(0);
  cluster.AddStage(1);
  EXPECT_NE(cluster.Wait(5).Phase(), JobPhase::kRunning);
  EXPECT_TRUE(drained) << "a job that waits holds nobody up";
  cluster.RestartCoordinator();
  cluster.Digest();
}

TEST(DrainTest, WaitsForAStepThatHangsUntilItIsAbandoned) {
  TestCluster cluster(2);
  cluster.Start().UntilStep(1).stage(1).hung = true;
  bool drained = false;
  cluster.loop().Drain(false, [&] { drained = true; });
  EXPECT_FALSE(cluster.RunUntil([&] { return drained; }, 5));
  EXPECT_TRUE(cluster.RunUntil([&] { return drained; }, 60)) << "the step's own deadline";
}

TEST(RecordsTest, GivesPagesOfWhatIsOnDisk) {
  TestCluster cluster(2);
  cluster.Start().Digest();
  uint64_t last = 0;
  for (size_t read = 4; read == 4;) {
    const auto page = cluster.loop().Records(kJob, last, 4);
    ASSERT_TRUE(page.ok());
    read = page->size();
    ASSERT_LE(read, 4u);
    for (const JobRecord& record : *page) EXPECT_EQ(record.number, ++last);
  }
  EXPECT_EQ(last, cluster.Records(kJob).back().number);
  EXPECT_TRUE(absl::IsNotFound(cluster.loop().Records("nobody", 0, 4).status()));
}

}  // namespace
}  // namespace stagecoach
