// Symptom: a job with `resume: {job: first}` and no step lost a stage before its first checkpoint
// and went on from a later step of `first` than it had begun with; its bits changed, and had
// `first` kept fewer checkpoints there would have been nothing to return to. Cause: the newest
// checkpoint was looked up again by each recovery, and only jobs that named a step pinned it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"
#include "plan/learning_rates/constant.h"

namespace stagecoach {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kStep3[] = "step-000000000003", kStep6[] = "step-000000000006";

// Keeps its newest checkpoint only.
JobSpec First() {
  JobSpec spec = SmallJob(2);
  spec.training.steps = 20;
  spec.checkpoint.keep = 1;
  return spec;
}

// Goes on from `first`; its only checkpoint is its last one.
JobSpec Second(int64_t step = -1) {
  JobSpec spec = First();
  spec.resume.job = "first";
  spec.resume.step = step;
  spec.checkpoint.every_steps = 0;
  return spec;
}

enum class Trouble { kNone, kStageLost, kCoordinatorRestarted };

// `second` starts at step 3 of `first`, which goes on.
Outcome RunSecond(Trouble trouble) {
  TestCluster cluster(4);
  cluster.Start(First(), "first").UntilSaved(3, "first");
  JobSpec second = Second();
  second.training.learning_rate = ConstantRate{.peak = 0.02};  // so that it matters where it begins
  cluster.Start(second, "second").UntilSaved(9, "first");
  EXPECT_THAT(cluster.Saved("first"), Contains(kStep3)) << "in use";
  EXPECT_THAT(cluster.Saved("first"), Not(Contains(kStep6)));
  if (trouble == Trouble::kStageLost) cluster.ReplaceStage(3);
  if (trouble == Trouble::kCoordinatorRestarted) cluster.RestartCoordinator();
  cluster.Digest("second");
  EXPECT_EQ(cluster.View("second").recoveries, trouble == Trouble::kNone ? 0u : 1u);
  EXPECT_THAT(cluster.History("second"),
              HasSubstr("begins at the newest checkpoint of job first, step 3"));
  const Outcome outcome = OutcomeOf(cluster.Records("second"));
  EXPECT_EQ(outcome.losses.begin()->first, 4u);
  cluster.Digest("first");
  return outcome;
}

TEST(PinnedStartTest, ARecoveryReturnsToTheCheckpointTheJobBeganWith) {
  const Outcome undisturbed = RunSecond(Trouble::kNone);
  EXPECT_EQ(RunSecond(Trouble::kStageLost), undisturbed);
  EXPECT_EQ(RunSecond(Trouble::kCoordinatorRestarted), undisturbed);
}

// A job that named a step was accepted and failed at once, "no checkpoint of this step": retention
// removed it between the look at it and the pin. The loop is held up there, at every event.
TEST(PinnedStartTest, ANamedCheckpointIsNotRemovedWhileTheJobIsBeingAccepted) {
  constexpr double kEffect = 0.4;
  int accepted = 0, refused = 0;
  for (int at = 60; at < 160; at += kSanitized ? 10 : 2) {
    TestCluster cluster(4);
    cluster.Start(First(), "first").UntilSaved(3, "first").effect_seconds = kEffect;
    const int begin = cluster.events();
    cluster.RunUntil([&] { return cluster.events() >= begin + at; });
    std::optional<absl::Status> answer;
    cluster.loop().Submit("second", Second(3),
                          [&](const absl::StatusOr<JobView>& view) { answer = view.status(); });
    // The look is under way; what `first` begins meanwhile comes right behind it.
    cluster.Wait(0.8 * kEffect).KeepLoopBusy(kEffect);
    ASSERT_TRUE(cluster.RunUntil([&] { return answer.has_value(); }));
    if (answer->ok()) {
      ++accepted;
      cluster.Until([](const JobView& view) { return IsTerminal(view.phase); }, 1000, "second");
      ASSERT_EQ(cluster.Phase("second"), JobPhase::kSucceeded)
          << "submitted at event " << at << ": " << cluster.Message("second");
    } else {
      ++refused;
      EXPECT_TRUE(absl::IsNotFound(*answer)) << *answer;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0) << "it was gone before";
}

// Symptom: a job with `resume: {job: first}` was refused when the newest manifest of `first` was
// damaged, though the checkpoint before it was good.
TEST(PinnedStartTest, ABrokenNewestManifestIsPassedOverUnlessItsStepIsNamed) {
  TestCluster cluster(2);
  cluster.Start(SmallJob(2), "first").Digest("first");
  const std::string newest = "/checkpoints/first/step-000000000007/MANIFEST.json";
  cluster.files().SetContents(newest, cluster.files().Contents(newest).substr(0, 100));
  const absl::Status named = cluster.Submit("named", Second(7)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(named)) << named << ": who names a step means that one";
  EXPECT_THAT(
      std::string(named.message()),
      HasSubstr("resume_step=7: this checkpoint of job first cannot be read: /checkpoints/first/"));
  cluster.Start(Second(), "second").Digest("second");
  EXPECT_THAT(cluster.History("second"),
              HasSubstr("a broken checkpoint was set aside: step-000000000007"));
  EXPECT_THAT(cluster.History("second"),
              HasSubstr("begins at the newest checkpoint of job first, step 6"));
}

TEST(PinnedStartTest, ARefusedJobReleasesTheCheckpointItLookedAt) {
  TestCluster cluster(4);
  cluster.Start(First(), "first").UntilSaved(3, "first");
  JobSpec second = Second(3);
  second.seed = 8;
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster.Submit("second", second).status()));
  EXPECT_THAT(cluster.UntilSaved(9, "first").Saved("first"), Not(Contains(kStep3)));
}

// Symptom: `export` of a job with keep: 1 said "no checkpoint that can be loaded" while the job
// trained. Cause: it read the newest checkpoint without a pin, and the next commit removed what was
// being hashed.
TEST(PinnedStartTest, CheckpointsThatSomebodyReadsStayUntilTheyAreRead) {
  TestCluster cluster(2);
  cluster.Start(First()).UntilSaved(3);
  std::shared_ptr<const void> pin;
  cluster.loop().PinCheckpoints(
      kJob, [&](absl::StatusOr<std::shared_ptr<const void>> given) { pin = *std::move(given); });
  cluster.UntilSaved(9);
  ASSERT_EQ(pin.use_count(), 1);
  EXPECT_THAT(cluster.Saved(), Contains(kStep3)) << "it is being read";
  EXPECT_THAT(cluster.Saved(), Not(Contains(kStep6)));
  pin.reset();
  cluster.Digest();
  EXPECT_THAT(cluster.Saved(), Not(Contains(kStep3)));
  EXPECT_THAT(cluster.Saved(), Contains("step-000000000020"));
}

}  // namespace
}  // namespace stagecoach
