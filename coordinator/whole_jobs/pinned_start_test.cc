// Symptom: a job with `resume: {job: first}` and no step lost a stage before its first checkpoint
// and went on from a later step of `first` than it had begun with; its bits changed, and had `first`
// kept fewer checkpoints there would have been nothing to return to. Cause: the newest checkpoint
// was looked up again by each recovery, and only jobs that named a step pinned it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "coordinator/testing/simulated_cluster.h"
#include "plan/learning_rates/constant.h"

namespace stagecoach {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct PinnedOutcome {
  std::string digest;
  std::map<uint64_t, double> losses;
  friend bool operator==(const PinnedOutcome&, const PinnedOutcome&) = default;
};

enum class Trouble { kNone, kStageLost, kCoordinatorRestarted };

// `second` starts at step 3 of `first`, which goes on and keeps its newest checkpoint only.
PinnedOutcome RunSecond(Trouble trouble) {
  SimulatedCluster cluster(4);
  JobSpec first = SmallJob(2);
  first.training.steps = 20;
  first.checkpoint.keep = 1;
  EXPECT_TRUE(cluster.Submit("first", first).ok());
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.View("first").last_checkpoint_step == 3; }));
  JobSpec second = first;
  second.resume_job = "first";
  second.checkpoint.every_steps = 0;
  second.training.learning_rate = ConstantRate{.peak = 0.02};  // so that it matters where it begins
  EXPECT_TRUE(cluster.Submit("second", second).ok());
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.View("first").last_checkpoint_step == 9; }));
  const std::vector<std::string> kept = cluster.files().List("/checkpoints/first").value();
  EXPECT_THAT(kept, Contains("step-000000000003")) << "in use";
  EXPECT_THAT(kept, Not(Contains("step-000000000006")));
  switch (trouble) {
    case Trouble::kNone:
      break;
    case Trouble::kStageLost:
      cluster.KillStage(3);
      cluster.RestartStage(3);
      break;
    case Trouble::kCoordinatorRestarted:
      cluster.CrashCoordinator();
      cluster.StartCoordinator();
      break;
  }
  EXPECT_TRUE(cluster.RunToEnd("second"));
  EXPECT_EQ(cluster.View("second").phase, JobPhase::kSucceeded) << cluster.View("second").message;
  EXPECT_EQ(cluster.View("second").recoveries, trouble == Trouble::kNone ? 0u : 1u);
  PinnedOutcome outcome{cluster.View("second").weights_digest, {}};
  std::string history;
  for (const JobRecord& record : cluster.Records("second")) {
    if (record.kind == JobRecord::Kind::kStep) outcome.losses[record.step] = record.loss;
    history += record.message;
  }
  EXPECT_EQ(outcome.losses.begin()->first, 4u);
  EXPECT_THAT(history, HasSubstr("begins at the newest checkpoint of job first, step 3"));
  // It has ended: nothing holds step 3 any more.
  EXPECT_TRUE(cluster.RunToEnd("first"));
  return outcome;
}

TEST(PinnedStartTest, ARecoveryReturnsToTheCheckpointTheJobBeganWith) {
  const PinnedOutcome undisturbed = RunSecond(Trouble::kNone);
  EXPECT_EQ(RunSecond(Trouble::kStageLost), undisturbed);
  EXPECT_EQ(RunSecond(Trouble::kCoordinatorRestarted), undisturbed);
}

// A job that named a step was accepted and failed at once, "no checkpoint of this step": retention
// removed it between the look at it and the pin. The loop is held up there, at every event.
TEST(PinnedStartTest, ANamedCheckpointIsNotRemovedWhileTheJobIsBeingAccepted) {
  constexpr double kEffect = 0.4;
  int accepted = 0, refused = 0;
  for (int at = 60; at < 160; at += kSanitized ? 10 : 2) {
    SimulatedCluster cluster(4);
    JobSpec first = SmallJob(2);
    first.training.steps = 20;
    first.checkpoint.keep = 1;
    ASSERT_TRUE(cluster.Submit("first", first).ok());
    ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("first").last_checkpoint_step == 3; }));
    cluster.effect_seconds = kEffect;
    const int begin = cluster.events();
    cluster.RunUntil([&] { return cluster.events() >= begin + at; });
    JobSpec second = first;
    second.resume_job = "first";
    second.resume_step = 3;
    second.checkpoint.every_steps = 0;
    std::optional<absl::Status> answer;
    cluster.loop().Submit("second", second,
                          [&](const absl::StatusOr<JobView>& view) { answer = view.status(); });
    // The look is under way; what `first` begins meanwhile comes right behind it.
    const double submitted = cluster.now();
    cluster.RunUntil([&] { return cluster.now() > submitted + 0.8 * kEffect; });
    cluster.KeepLoopBusy(kEffect);
    ASSERT_TRUE(cluster.RunUntil([&] { return answer.has_value(); }));
    if (!answer->ok()) {
      EXPECT_TRUE(absl::IsNotFound(*answer)) << *answer;
      ++refused;
      continue;
    }
    ++accepted;
    ASSERT_TRUE(cluster.RunUntil([&] { return IsTerminal(cluster.View("second").phase); }));
    ASSERT_EQ(cluster.View("second").phase, JobPhase::kSucceeded)
        << "submitted at event " << at << ": " << cluster.View("second").message;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0) << "it was gone before";
}

// Symptom: a job with `resume: {job: first}` was refused when the newest manifest of `first` was damaged, though the
// checkpoint before it was good.
TEST(PinnedStartTest, ABrokenNewestManifestIsPassedOverUnlessItsStepIsNamed) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("first", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  const std::string newest = "/checkpoints/first/step-000000000007/MANIFEST.json";
  cluster.files().SetContents(newest, cluster.files().Contents(newest).substr(0, 100));
  JobSpec second = SmallJob(2);
  second.training.steps = 9;
  second.resume_job = "first";
  second.resume_step = 7;
  const absl::Status named = cluster.Submit("named", second).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(named)) << named << ": who names a step means that one";
  EXPECT_THAT(
      std::string(named.message()),
      HasSubstr("resume_step=7: this checkpoint of job first cannot be read: /checkpoints/first/"));
  second.resume_step = -1;
  const absl::StatusOr<JobView> accepted = cluster.Submit("second", second);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  ASSERT_TRUE(cluster.RunToEnd("second"));
  EXPECT_EQ(cluster.View("second").phase, JobPhase::kSucceeded) << cluster.View("second").message;
  std::string history;
  for (const JobRecord& record : cluster.Records("second")) history += record.message + "\n";
  EXPECT_THAT(history, HasSubstr("a broken checkpoint was set aside: step-000000000007"));
  EXPECT_THAT(history, HasSubstr("begins at the newest checkpoint of job first, step 6"));
}

// A refused submission keeps nothing.
TEST(PinnedStartTest, ARefusedJobReleasesTheCheckpointItLookedAt) {
  SimulatedCluster cluster(4);
  JobSpec first = SmallJob(2);
  first.training.steps = 20;
  first.checkpoint.keep = 1;
  ASSERT_TRUE(cluster.Submit("first", first).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("first").last_checkpoint_step == 3; }));
  JobSpec second = first;
  second.resume_job = "first";
  second.resume_step = 3;
  second.seed = 8;
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster.Submit("second", second).status()));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("first").last_checkpoint_step == 9; }));
  EXPECT_THAT(cluster.files().List("/checkpoints/first").value(),
              Not(Contains("step-000000000003")));
}

// Symptom: `export` of a job with keep: 1 said "no checkpoint that can be loaded" while the job trained. Cause: it read the
// newest checkpoint without a pin, and the next commit removed what was being hashed.
TEST(PinnedStartTest, CheckpointsThatSomebodyReadsStayUntilTheyAreRead) {
  SimulatedCluster cluster(2);
  JobSpec job = SmallJob(2);
  job.training.steps = 20;
  job.checkpoint.keep = 1;
  ASSERT_TRUE(cluster.Submit("a", job).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").last_checkpoint_step == 3; }));
  std::shared_ptr<const void> pin;
  bool pinned = false;
  cluster.loop().PinCheckpoints("a", [&](absl::StatusOr<std::shared_ptr<const void>> given) {
    pin = *std::move(given);
    pinned = true;
  });
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").last_checkpoint_step == 9; }));
  ASSERT_TRUE(pinned);
  const auto kept = [&] { return cluster.files().List("/checkpoints/a").value(); };
  EXPECT_THAT(kept(), Contains("step-000000000003")) << "it is being read";
  EXPECT_THAT(kept(), Not(Contains("step-000000000006")));
  pin.reset();
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_THAT(kept(), Not(Contains("step-000000000003")));
  EXPECT_THAT(kept(), Contains("step-000000000020"));
}

}  // namespace
}  // namespace stagecoach
