// Checkpoints of whole jobs: saved, waited for, and refused to jobs that they do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "coordinator/whole_jobs/test_cluster_testing.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A checkpoint was committed before the records of its steps were on disk: with one a step, some
// were never told of.
TEST(CheckpointsTest, TellsOfEveryStepThatACheckpointHas) {
  JobSpec spec = SmallJob(2);
  spec.checkpoint.every_steps = 1;
  constexpr int kBehindTheFirstCheckpoints = 80, kEvery = kSanitized ? 8 : 1;
  for (int at = 3; at < kBehindTheFirstCheckpoints && !HasFailure(); at += kEvery) {
    TestCluster cluster(2);
    cluster.Start(spec);
    while (cluster.events() < at) cluster.Step();
    cluster.RestartCoordinator();
    cluster.ExpectGoldenEnd(absl::StrCat("killed at event ", at));
  }
}

// It ended as FAILED, its result unwritten, for a disk that somebody made room on a minute later.
// With steps that took a minute together the count of tries began anew at each, so that they were
// trained again and again without a wait.
TEST(CheckpointsTest, EachTryOfTheLastCheckpointWaitsLongerHoweverLongItsStepsTake) {
  for (const double step_seconds : {SimulatedCluster::kStepSeconds, 100.0}) {
    TestCluster cluster(2);
    cluster.step_seconds = step_seconds;
    cluster.Start().UntilSaved(6).files().SetCapacity(100);
    cluster.UntilRecovery(4, 86400);
    EXPECT_EQ(cluster.Phase(), JobPhase::kRecovering);
    EXPECT_THAT(cluster.Message(),
                AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("at step 7"),
                      HasSubstr("the one of step 6 is kept"), HasSubstr("until the folder"),
                      HasSubstr("the next attempt is in 2 s")));
    EXPECT_THAT(cluster.Saved(), ElementsAre("LATEST", "step-000000000003", "step-000000000006"));
    cluster.UntilPhase(JobPhase::kRunning);
    EXPECT_THAT(cluster.Message(),
                HasSubstr("again, as the last checkpoint, at step 7, could not be written"));
    cluster.files().SetCapacity(std::numeric_limits<int64_t>::max());
    cluster.ExpectGoldenEnd("with room again");
    EXPECT_THAT(cluster.Message(), Not(HasSubstr("again")));
  }
}

// Symptom: the folder of checkpoints was not mounted for a moment, and the job started over from
// its seed.
TEST(CheckpointsTest, StorageThatIsAwayCostsTimeOnly) {
  TestCluster cluster(2);
  cluster.Start().UntilSaved(3);
  const std::string folder = absl::StrCat("/checkpoints/", kJob);
  ASSERT_TRUE(cluster.files().Rename(folder, "/elsewhere").ok());
  cluster.ReplaceStage(0);
  EXPECT_THAT(cluster.Wait(20).Message(), HasSubstr("is the storage mounted?"));
  ASSERT_TRUE(cluster.files().Rename("/elsewhere", folder).ok());
  cluster.ExpectGoldenEnd("unmounted");
  uint64_t repeated = 0;
  bool recovered = false;
  for (const JobRecord& record : cluster.Records(kJob)) {
    recovered = recovered || record.kind == JobRecord::Kind::kRecovery;
    if (recovered && record.kind == JobRecord::Kind::kStep && repeated == 0) repeated = record.step;
  }
  EXPECT_EQ(repeated, 4u) << "from the checkpoint on";
}

TEST(CheckpointsTest, RefusesAResumeThatWouldChangeTheBits) {
  TestCluster cluster(2);
  cluster.Start(SmallJob(2), "first").Digest("first");
  struct Case {
    std::function<void(JobSpec&)> change;
    absl::StatusCode code;
    std::vector<std::string> message;
  };
  constexpr auto kState = absl::StatusCode::kFailedPrecondition;
  for (const Case& c : std::vector<Case>{
           {[](JobSpec& s) { s.seed = 8; },
            kState,
            {"seed=8 but checkpoint first at step 7 was made with 7"}},
           {[](JobSpec& s) { s.training.batch_size = 8; }, kState, {"training.batch_size=8"}},
           {[](JobSpec& s) { s.training.micro_batches = 4; }, kState, {"training.micro_batches=4"}},
           {[](JobSpec& s) { s.network.attributes.Set("width", int64_t{8}); },
            kState,
            {"model (sha256)"}},
           {[](JobSpec& s) { s.training.steps = 7; }, kState, {"training.steps=7"}},
           // Seen: accepted, and then every load failed with DATA_LOSS for want of the slots, which
           // counted as the stages' fault: twelve recoveries.
           {[](JobSpec& s) { s.training.optimizer = SgdSpec{.momentum = 0.9}; },
            kState,
            {"training.optimizer: sgd keeps state velocity, checkpoint first at step 7 holds state "
             "m and v",
             "resume.fresh_optimizer: true"}},
           {[](JobSpec& s) { s.training.optimizer = SgdSpec{}; }, kState, {"sgd keeps no state"}},
           {[](JobSpec& s) { s.resume.job = "nobody"; }, absl::StatusCode::kNotFound, {}},
           {[](JobSpec& s) { s.resume.step = 5; }, absl::StatusCode::kNotFound, {}}}) {
    JobSpec spec = SmallJob(2);
    spec.training.steps = 20;
    spec.resume.job = "first";
    c.change(spec);
    const absl::Status refused = cluster.Submit("", spec).status();
    EXPECT_EQ(refused.code(), c.code) << refused;
    for (const std::string& part : c.message) EXPECT_THAT(refused.message(), HasSubstr(part));
  }
}

}  // namespace
}  // namespace stagecoach
