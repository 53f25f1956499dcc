// A coordinator that holds what it finds: an interrupted job neither starts by itself nor takes
// stages, and goes on when asked, with the bits of an undisturbed run for every number of stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_is.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobManagerOptions Holding() {
  JobManagerOptions options;
  options.hold_jobs = true;
  return options;
}

class HoldTest : public testing::Test {
 protected:
  // The job runs past its first checkpoint, and a new coordinator finds it.
  void Interrupt(const JobSpec& spec = SmallJob(2)) {
    cluster_.Start(spec).UntilStep(4).RestartCoordinator();
    ASSERT_EQ(cluster_.Phase(), JobPhase::kHeld);
  }
  absl::Status Resume(int64_t stages, const std::string& id = kJob) {
    return cluster_.loop().Resume(id, stages).status();
  }

  TestCluster cluster_{3, Holding()};
};

// Seen: the next run in the folder of an interrupted one hung, for the old job had been taken up
// again without a word and had the stages.
TEST_F(HoldTest, AHeldJobTakesNoStages) {
  Interrupt();
  cluster_.Start(SmallJob(3), "other").Digest("other");
  EXPECT_EQ(cluster_.Phase(), JobPhase::kHeld);
  EXPECT_THAT(cluster_.View(kJob).stages, IsEmpty());
}

TEST(HoldAndGoOnTest, GoesOnWithTheSameBitsForEveryNumberOfStages) {
  for (const int stages : {0, 1, 2, 3}) {
    TestCluster cluster(3, Holding());
    cluster.Start().UntilStep(5).RestartCoordinator();
    const absl::StatusOr<JobView> resumed = cluster.loop().Resume(kJob, stages);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    cluster.UntilPhase(JobPhase::kRunning);
    EXPECT_EQ(cluster.View(kJob).step, 3u) << "from its checkpoint, not from the beginning";
    const size_t expected = stages == 0 ? 2 : static_cast<size_t>(stages);
    EXPECT_EQ(cluster.View(kJob).stages.size(), expected);
    // Over one more coordinator: the journal has the new number.
    cluster.RestartCoordinator();
    ASSERT_TRUE(cluster.loop().Resume(kJob, 0).ok());
    cluster.ExpectGoldenEnd(absl::StrCat(stages, " stages"));
    EXPECT_EQ(cluster.View(kJob).stages.size(), expected);
  }
}

TEST_F(HoldTest, ARefusedResumeLeavesItHeld) {
  Interrupt();
  EXPECT_THAT(Resume(99),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pipeline.stages")));
  EXPECT_EQ(cluster_.Phase(), JobPhase::kHeld);
  EXPECT_TRUE(absl::IsNotFound(Resume(0, "nobody")));
  ASSERT_TRUE(cluster_.Cancel(kJob).ok());
  EXPECT_EQ(cluster_.Phase(), JobPhase::kCancelled);
  EXPECT_THAT(Resume(0),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("resume.job=small-1")));
}

// It ended as FAILED, with its steps, because the devices were others than before.
TEST_F(HoldTest, ResumedWhereItsBitsWouldBeOthersItIsHeldAgain) {
  Interrupt();
  const auto resume_on = [this](const std::string& fingerprint) {
    for (int k = 0; k < 3; ++k) cluster_.stage(k).fingerprint = fingerprint;
    EXPECT_TRUE(Resume(0).ok());
  };
  resume_on("other");
  cluster_.Until([](const JobView& view) {
    return view.phase == JobPhase::kHeld &&
           view.message.find("cannot go on here") != std::string::npos;
  });
  EXPECT_THAT(cluster_.Message(), HasSubstr("it began with fingerprint"));
  resume_on("avx2");
  cluster_.Digest();
}

TEST_F(HoldTest, AJobOnMixedDevicesKeepsItsNumberOfStages) {
  JobSpec spec = SmallJob(2);
  spec.pipeline.mixed_devices = true;
  Interrupt(spec);
  EXPECT_THAT(Resume(3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("mixed_devices")));
  EXPECT_EQ(cluster_.Phase(), JobPhase::kHeld);
  EXPECT_TRUE(Resume(2).ok());
}

// Symptom: a job on as many devices as were free was resumed when one more was there, took it in,
// and was held again for devices that had left their places; and it takes no other number. Found by
// the simulator.
TEST_F(HoldTest, AJobOnMixedDevicesGoesOnWithAsManyAsItBeganWith) {
  JobSpec spec = SmallJob(0);
  spec.pipeline.mixed_devices = true;
  Interrupt(spec);
  cluster_.AddStage(3);
  ASSERT_TRUE(Resume(0).ok());
  cluster_.Digest();
}

TEST_F(HoldTest, AJobThatGoesOnAlreadyIsNotDisturbed) {
  Interrupt();
  ASSERT_TRUE(Resume(0).ok());
  const uint64_t generation = cluster_.UntilPhase(JobPhase::kRunning).View(kJob).generation;
  EXPECT_TRUE(Resume(0).ok()) << "a call that is repeated";
  EXPECT_TRUE(Resume(2).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Resume(3)));
  EXPECT_EQ(cluster_.View(kJob).generation, generation);
}

TEST_F(HoldTest, AJobThatWasHeldStaysHeldWithACoordinatorThatHoldsNothing) {
  Interrupt();
  cluster_.set_hold_jobs(false);
  cluster_.RestartCoordinator();
  EXPECT_EQ(cluster_.Wait(30).Phase(), JobPhase::kHeld);
  ASSERT_TRUE(Resume(0).ok());
  cluster_.RestartCoordinator();
  cluster_.Digest();  // once resumed, it is taken up like any other
}

}  // namespace
}  // namespace stagecoach
