// A coordinator that holds what it finds: an interrupted job neither starts by itself nor takes
// stages, and goes on when asked, with the bits of an undisturbed run for every number of stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHeldJob[] = "small-1";

std::map<uint64_t, double> HeldLossesOf(const std::vector<JobRecord>& records) {
  std::map<uint64_t, double> losses;
  for (const JobRecord& record : records) {
    if (record.kind == JobRecord::Kind::kStep) losses[record.step] = record.loss;
  }
  return losses;
}

JobManagerOptions Holding() {
  JobManagerOptions options;
  options.hold_jobs = true;
  return options;
}

class HoldTest : public testing::Test {
 protected:
  HoldTest() : cluster_(3, Holding()) {}

  // The job runs on two stages, past its first checkpoint, and a new coordinator finds it.
  void Interrupt() {
    ASSERT_TRUE(cluster_.Submit(kHeldJob, SmallJob(2)).ok());
    ASSERT_TRUE(cluster_.RunUntil([this] { return cluster_.View(kHeldJob).step == 4; }));
    Restart();
  }
  void Restart() {
    cluster_.CrashCoordinator();
    cluster_.StartCoordinator();
  }
  JobPhase Phase() { return cluster_.View(kHeldJob).phase; }

  SimulatedCluster cluster_;
};

// Seen: the next run in the folder of an interrupted one hung, for the old job had been taken up
// again without a word and had the stages.
TEST_F(HoldTest, AHeldJobTakesNoStages) {
  Interrupt();
  ASSERT_EQ(Phase(), JobPhase::kHeld);
  ASSERT_TRUE(cluster_.Submit("other", SmallJob(3)).ok());
  ASSERT_TRUE(cluster_.RunToEnd("other"));
  EXPECT_EQ(cluster_.View("other").phase, JobPhase::kSucceeded);
  EXPECT_EQ(Phase(), JobPhase::kHeld);
  EXPECT_THAT(cluster_.View(kHeldJob).stages, IsEmpty());
}

TEST_F(HoldTest, GoesOnWithTheSameBitsForEveryNumberOfStages) {
  SimulatedCluster golden(2);
  ASSERT_TRUE(golden.Submit(kHeldJob, SmallJob(2)).ok());
  ASSERT_TRUE(golden.RunToEnd(kHeldJob));
  for (const int stages : {0, 1, 2, 3}) {
    SimulatedCluster cluster(3, Holding());
    ASSERT_TRUE(cluster.Submit(kHeldJob, SmallJob(2)).ok());
    ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kHeldJob).step == 5; }));
    cluster.CrashCoordinator();
    cluster.StartCoordinator();
    ASSERT_EQ(cluster.View(kHeldJob).phase, JobPhase::kHeld);
    const absl::StatusOr<JobView> resumed = cluster.loop().Resume(kHeldJob, stages);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    const auto runs = [&] { return cluster.View(kHeldJob).phase == JobPhase::kRunning; };
    ASSERT_TRUE(cluster.RunUntil(runs)) << stages;
    EXPECT_EQ(cluster.View(kHeldJob).step, 3u) << "from its checkpoint, not from the beginning";
    EXPECT_EQ(cluster.View(kHeldJob).stages.size(), stages == 0 ? 2u : static_cast<size_t>(stages));
    // Over one more coordinator: the journal has the new number.
    cluster.CrashCoordinator();
    cluster.StartCoordinator();
    ASSERT_TRUE(cluster.loop().Resume(kHeldJob, 0).ok());
    ASSERT_TRUE(cluster.RunToEnd(kHeldJob)) << stages;
    EXPECT_EQ(cluster.View(kHeldJob).stages.size(), stages == 0 ? 2u : static_cast<size_t>(stages));
    EXPECT_EQ(cluster.View(kHeldJob).weights_digest, golden.View(kHeldJob).weights_digest)
        << stages;
    EXPECT_EQ(HeldLossesOf(cluster.Records(kHeldJob)), HeldLossesOf(golden.Records(kHeldJob)))
        << stages;
    EXPECT_THAT(cluster.violations, IsEmpty()) << stages;
  }
}

TEST_F(HoldTest, ARefusedResumeLeavesItHeld) {
  Interrupt();
  const absl::Status refused = cluster_.loop().Resume(kHeldJob, 99).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("pipeline.stages"));
  EXPECT_EQ(Phase(), JobPhase::kHeld);
  EXPECT_TRUE(absl::IsNotFound(cluster_.loop().Resume("nobody", 0).status()));
  ASSERT_TRUE(cluster_.Cancel(kHeldJob).ok());
  EXPECT_EQ(Phase(), JobPhase::kCancelled);
  const absl::Status ended = cluster_.loop().Resume(kHeldJob, 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("resume.job=small-1"));
}

// It ended as FAILED, with its steps, because the devices were others than before.
TEST_F(HoldTest, ResumedWhereItsBitsWouldBeOthersItIsHeldAgain) {
  Interrupt();
  for (int k = 0; k < 3; ++k) cluster_.stage(k).fingerprint = "other";
  ASSERT_TRUE(cluster_.loop().Resume(kHeldJob, 0).ok());
  ASSERT_TRUE(cluster_.RunUntil([this] {
    return cluster_.View(kHeldJob).message.find("cannot go on here") != std::string::npos;
  }));
  EXPECT_EQ(Phase(), JobPhase::kHeld);
  EXPECT_THAT(cluster_.View(kHeldJob).message, HasSubstr("it began with fingerprint"));
  for (int k = 0; k < 3; ++k) cluster_.stage(k).fingerprint = "avx2";
  ASSERT_TRUE(cluster_.loop().Resume(kHeldJob, 0).ok());
  ASSERT_TRUE(cluster_.RunToEnd(kHeldJob));
  EXPECT_EQ(Phase(), JobPhase::kSucceeded);
}

TEST_F(HoldTest, AJobOnMixedDevicesKeepsItsNumberOfStages) {
  JobSpec spec = SmallJob(2);
  spec.pipeline.mixed_devices = true;
  ASSERT_TRUE(cluster_.Submit(kHeldJob, spec).ok());
  ASSERT_TRUE(cluster_.RunUntil([this] { return cluster_.View(kHeldJob).step == 4; }));
  Restart();
  const absl::Status refused = cluster_.loop().Resume(kHeldJob, 3).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("mixed_devices"));
  EXPECT_EQ(Phase(), JobPhase::kHeld);
  EXPECT_TRUE(cluster_.loop().Resume(kHeldJob, 2).ok());
}

TEST_F(HoldTest, AJobThatGoesOnAlreadyIsNotDisturbed) {
  Interrupt();
  ASSERT_TRUE(cluster_.loop().Resume(kHeldJob, 0).ok());
  ASSERT_TRUE(cluster_.RunUntil([this] { return Phase() == JobPhase::kRunning; }));
  const uint64_t generation = cluster_.View(kHeldJob).generation;
  EXPECT_TRUE(cluster_.loop().Resume(kHeldJob, 0).ok()) << "a call that is repeated";
  EXPECT_TRUE(cluster_.loop().Resume(kHeldJob, 2).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster_.loop().Resume(kHeldJob, 3).status()));
  EXPECT_EQ(cluster_.View(kHeldJob).generation, generation);
}

TEST_F(HoldTest, AJobThatWasHeldStaysHeldWithACoordinatorThatHoldsNothing) {
  Interrupt();
  ASSERT_EQ(Phase(), JobPhase::kHeld);
  cluster_.set_hold_jobs(false);
  Restart();
  EXPECT_FALSE(cluster_.RunUntil([this] { return Phase() != JobPhase::kHeld; }, 30));
  ASSERT_TRUE(cluster_.loop().Resume(kHeldJob, 0).ok());
  Restart();
  EXPECT_TRUE(cluster_.RunToEnd(kHeldJob)) << "once resumed, it is taken up like any other";
}

// Symptom: a job on as many devices as were free was resumed when one more was there, took it in, and was held again for
// devices that had left their places; and it takes no other number. Found by the simulator.
TEST(HoldMixedDevicesTest, GoesOnWithAsManyDevicesAsItBeganWith) {
  JobManagerOptions holding;
  holding.hold_jobs = true;
  SimulatedCluster cluster(2, holding);
  JobSpec spec = SmallJob(2);
  spec.pipeline.stages = 0;
  spec.pipeline.mixed_devices = true;
  ASSERT_TRUE(cluster.Submit("a", spec).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 4; }));
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  cluster.AddStage(2);
  ASSERT_EQ(cluster.View("a").phase, JobPhase::kHeld);
  ASSERT_TRUE(cluster.loop().Resume("a", 0).ok());
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded) << cluster.View("a").message;
}

}  // namespace
}  // namespace stagecoach
