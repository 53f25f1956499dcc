// Checkpoints of whole jobs: saved, resumed, and passed over where they are broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "coordinator/testing/simulated_cluster.h"
#include "coordinator/whole_jobs/golden_job_testing.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A checkpoint was committed before the records of its steps were on disk: with one a step, some were never told of.
TEST(CheckpointsTest, TellsOfEveryStepThatACheckpointHas) {
  JobSpec spec = SmallJob(2);
  spec.checkpoint.every_steps = 1;
  constexpr int kBehindTheFirstCheckpoints = 80;
  constexpr int kEvery = (kStride + 2) / 3;  // sanitized not every one
  for (int at = 3; at < kBehindTheFirstCheckpoints; at += kEvery) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, spec).ok());
    while (cluster.events() < at) cluster.Step();
    cluster.CrashCoordinator();
    cluster.StartCoordinator();
    ExpectGoldenEnd(cluster, absl::StrCat("killed at event ", at));
    if (HasFailure()) return;
  }
}

// Row 14: the disk is full for one checkpoint.
TEST(CheckpointsTest, TrainsOnWhenACheckpointFailsAndSavesTheNext) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).step == 3; });
  cluster.files().SetCapacity(100);
  cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
  cluster.files().SetCapacity(1 << 30);
  ExpectGoldenEnd(cluster, "full disk");
  std::vector<std::string> errors;
  for (const JobRecord& record : cluster.Records(kJob)) {
    if (record.kind == JobRecord::Kind::kCheckpoint && !record.message.empty()) {
      errors.push_back(record.message);
    }
  }
  EXPECT_THAT(errors, ElementsAre(AllOf(HasSubstr("checkpoint at step 3"),
                                        HasSubstr("RESOURCE_EXHAUSTED"))));
}

// It ended as FAILED, its result unwritten, for a disk that somebody made room on a minute later.
TEST(CheckpointsTest, WaitsForRoomForItsLastCheckpointAndKeepsTheOneBefore) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).last_checkpoint_step == 6; });
  cluster.files().SetCapacity(100);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).recoveries == 5; }, 600));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kRecovering);
  EXPECT_THAT(cluster.View(kJob).message,
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("at step 7"),
                    HasSubstr("the one of step 6 is kept"), HasSubstr("until the folder")));
  EXPECT_THAT(StateFolders(cluster),
              ElementsAre("LATEST", "step-000000000003", "step-000000000006"));
  cluster.files().SetCapacity(std::numeric_limits<int64_t>::max());
  ExpectGoldenEnd(cluster, "with room again");
}

// Seen: with steps that took a minute together the count of tries began anew at each, so that it trained them again and again
// without a wait, and nothing said why.
TEST(CheckpointsTest, EachTryOfTheLastCheckpointWaitsLongerHoweverLongItsStepsTake) {
  SimulatedCluster cluster(2);
  cluster.step_seconds = 100;
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  constexpr double kDay = 86400;
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).last_checkpoint_step == 6; }, kDay));
  cluster.files().SetCapacity(100);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kJob).recoveries == 4; }, kDay));
  EXPECT_THAT(cluster.View(kJob).message, HasSubstr("the next attempt is in 2 s"));
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.View(kJob).phase == JobPhase::kRunning; }, kDay));
  EXPECT_THAT(cluster.View(kJob).message,
              HasSubstr("again, as the last checkpoint, at step 7, could not be written"));
  cluster.files().SetCapacity(std::numeric_limits<int64_t>::max());
  ASSERT_TRUE(cluster.RunToEnd(kJob, kDay));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kSucceeded) << cluster.View(kJob).message;
  EXPECT_THAT(cluster.View(kJob).message, ::testing::Not(HasSubstr("again")));
}

// Every call of a checkpoint's writing fails once: training goes on, the end is the same.
TEST(CheckpointsTest, SurvivesAnyFailedCallOfAnEarlierCheckpoint) {
  for (int64_t call = 1; call < 200; call += kStride / 3 + 1) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    cluster.RunUntil([&] { return cluster.View(kJob).step == 3; });
    const int64_t before = cluster.files().calls();
    cluster.files().Inject({.call = call, .code = absl::StatusCode::kResourceExhausted});
    cluster.RunUntil([&] { return cluster.View(kJob).step == 4; });
    const bool past = cluster.files().calls() - before < call;
    cluster.files().ClearFault();
    ExpectGoldenEnd(cluster, absl::StrCat("call ", call));
    if (past || HasFailure()) return;
  }
}

// Row 16.
TEST(CheckpointsTest, FallsBackToAnOlderCheckpointWhenTheNewestIsBroken) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
  cluster.RunUntil([&] { return cluster.View(kJob).last_checkpoint_step == 6; });
  const std::string folder = absl::StrCat("/checkpoints/", kJob, "/step-000000000006/");
  const std::string shard = folder + cluster.files().List(folder)->at(1);
  std::string bytes = cluster.files().Contents(shard);
  bytes[bytes.size() - 3] ^= 1;
  cluster.files().SetContents(shard, bytes);
  cluster.KillStage(0);
  cluster.RestartStage(0);
  ExpectGoldenEnd(cluster, "flipped bit");
  std::string history;
  for (const JobRecord& record : cluster.Records(kJob)) absl::StrAppend(&history, record.message);
  EXPECT_THAT(history, HasSubstr("a broken checkpoint was set aside: step-000000000006"));
}

TEST(CheckpointsTest, ResumesAnotherJobsCheckpointWithAnotherNumberOfStages) {
  SimulatedCluster cluster(3);
  JobSpec first = SmallJob(2);
  first.training.steps = 4;
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  JobSpec second = SmallJob(3);
  second.resume_job = "first";
  ASSERT_TRUE(cluster.Submit(kJob, second).ok());
  ASSERT_TRUE(cluster.RunToEnd(kJob));
  EXPECT_EQ(cluster.View(kJob).phase, JobPhase::kSucceeded) << cluster.View(kJob).message;
  EXPECT_EQ(OutcomeOf(cluster.Records(kJob)).digest, Golden().outcome.digest);
  EXPECT_EQ(OutcomeOf(cluster.Records(kJob)).losses.begin()->first, 5u);

  // Recovery before its own first checkpoint goes back to the other job's.
  second.resume_step = 3;
  second.checkpoint.every_steps = 0;
  ASSERT_TRUE(cluster.Submit("third", second).ok());
  cluster.RunUntil([&] { return cluster.View("third").step == 6; });
  cluster.KillStage(2);
  cluster.RestartStage(2);
  ASSERT_TRUE(cluster.RunToEnd("third"));
  EXPECT_EQ(OutcomeOf(cluster.Records("third")).digest, Golden().outcome.digest);
}

TEST(CheckpointsTest, RefusesAResumeThatWouldChangeTheBits) {
  SimulatedCluster cluster(2);
  JobSpec first = SmallJob(2);
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  const auto refusal = [&](const std::function<void(JobSpec&)>& change) {
    JobSpec spec = SmallJob(2);
    spec.training.steps = 20;
    spec.resume_job = "first";
    change(spec);
    return cluster.Submit("", spec).status();
  };
  EXPECT_THAT(refusal([](JobSpec& s) { s.seed = 8; }).message(),
              HasSubstr("seed=8 but checkpoint first at step 7 was made with 7"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.batch_size = 8; }).message(),
              HasSubstr("training.batch_size=8"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.micro_batches = 4; }).message(),
              HasSubstr("training.micro_batches=4"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.model.attributes.Set("width", int64_t{8}); }).message(),
              HasSubstr("model (sha256)"));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.steps = 7; }).message(),
              HasSubstr("training.steps=7"));
  // Seen: accepted, and then every load failed with DATA_LOSS for want of the slots, which counted as
  // the stages' fault: twelve recoveries.
  const absl::Status optimizer =
      refusal([](JobSpec& s) { s.training.optimizer = SgdSpec{.momentum = 0.9}; });
  EXPECT_TRUE(absl::IsFailedPrecondition(optimizer)) << optimizer;
  EXPECT_THAT(std::string(optimizer.message()),
              AllOf(HasSubstr("training.optimizer: sgd keeps state velocity, checkpoint first at "
                              "step 7 holds state m and v"),
                    HasSubstr("resume.fresh_optimizer: true")));
  EXPECT_THAT(refusal([](JobSpec& s) { s.training.optimizer = SgdSpec{}; }).message(),
              HasSubstr("sgd keeps no state"));
  const absl::Status absent = refusal([](JobSpec& s) { s.resume_job = "nobody"; });
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
  const absl::Status step = refusal([](JobSpec& s) { s.resume_step = 5; });
  EXPECT_TRUE(absl::IsNotFound(step)) << step;
}

TEST(CheckpointsTest, RefusesAnIdWhoseFolderHoldsCheckpointsOfAnUnknownJob) {
  SimulatedCluster cluster(1);
  ASSERT_TRUE(cluster.Submit("first", SmallJob(1)).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  ASSERT_TRUE(cluster.files().Rename("/checkpoints/first", "/checkpoints/other").ok());
  const absl::Status status = cluster.Submit("other", SmallJob(1)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
}

}  // namespace
}  // namespace stagecoach
