// A coordinator that ends in order: what it refuses, what it waits for, and that the next one goes
// on as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kDrained[] = "small-1";

std::map<uint64_t, double> LossesOf(const std::vector<JobRecord>& records) {
  std::map<uint64_t, double> losses;
  for (const JobRecord& record : records) {
    if (record.kind == JobRecord::Kind::kStep) losses[record.step] = record.loss;
  }
  return losses;
}

struct WholeRun {
  std::string digest;
  std::map<uint64_t, double> losses;
  int events = 0;
};

WholeRun RunWhole() {
  SimulatedCluster cluster(2);
  EXPECT_TRUE(cluster.Submit(kDrained, SmallJob(2)).ok());
  EXPECT_TRUE(cluster.RunToEnd(kDrained));
  return {cluster.View(kDrained).weights_digest, LossesOf(cluster.Records(kDrained)),
          cluster.events()};
}

TEST(DrainTest, AtAnyMomentAJobEndsItsStepAndTheNextCoordinatorGoesOn) {
  const WholeRun golden = RunWhole();
  for (const bool save : {false, true}) {
    for (int moment = 1; moment < golden.events; moment += kSanitized ? 31 : 5) {
      const std::string what = absl::StrCat("save ", save, ", drained at event ", moment);
      SimulatedCluster cluster(2);
      ASSERT_TRUE(cluster.Submit(kDrained, SmallJob(2)).ok());
      while (cluster.events() < moment) ASSERT_TRUE(cluster.Step());
      bool drained = false;
      cluster.loop().Drain(save, [&] { drained = true; });
      const double before = cluster.now();
      ASSERT_TRUE(cluster.RunUntil([&] { return drained; }, 10)) << what;
      // The step at hand, and the two batches of an evaluation that is due after it.
      EXPECT_LT(cluster.now() - before, 3.5 * SimulatedCluster::kStepSeconds) << what;
      const JobView view = cluster.View(kDrained);
      if (view.step > 0) {
        EXPECT_TRUE(LossesOf(cluster.Records(kDrained)).contains(view.step))
            << what << ": who watches has not heard of step " << view.step;
      }
      if (save && view.phase == JobPhase::kRunning && view.step > 0) {
        EXPECT_EQ(view.last_checkpoint_step, static_cast<int64_t>(view.step)) << what;
      }
      cluster.CrashCoordinator();
      cluster.StartCoordinator();
      ASSERT_TRUE(cluster.RunToEnd(kDrained)) << what;
      EXPECT_EQ(cluster.View(kDrained).weights_digest, golden.digest) << what;
      EXPECT_EQ(LossesOf(cluster.Records(kDrained)), golden.losses) << what;
      EXPECT_THAT(cluster.violations, IsEmpty()) << what;
    }
  }
}

TEST(DrainTest, RefusesNewJobsAndPlacesNothing) {
  SimulatedCluster cluster(0);
  ASSERT_TRUE(cluster.Submit(kDrained, SmallJob(2)).ok());
  bool drained = false;
  cluster.loop().Drain(true, [&] { drained = true; });
  const absl::Status refused = cluster.Submit("small-2", SmallJob(2)).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("shutting down"));
  cluster.AddStage(0);
  cluster.AddStage(1);
  EXPECT_FALSE(
      cluster.RunUntil([&] { return cluster.View(kDrained).phase == JobPhase::kRunning; }, 5));
  EXPECT_TRUE(drained) << "a job that waits holds nobody up";
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  EXPECT_TRUE(cluster.RunToEnd(kDrained));
}

TEST(DrainTest, WaitsForAStepThatHangsUntilItIsAbandoned) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kDrained, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View(kDrained).step == 1; }));
  cluster.stage(1).hung = true;
  bool drained = false;
  cluster.loop().Drain(false, [&] { drained = true; });
  EXPECT_FALSE(cluster.RunUntil([&] { return drained; }, 5));
  EXPECT_TRUE(cluster.RunUntil([&] { return drained; }, 60)) << "the step's own deadline";
}

TEST(RecordsTest, GivesPagesOfWhatIsOnDisk) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit(kDrained, SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd(kDrained));
  const std::vector<JobRecord>& all = cluster.Records(kDrained);
  std::vector<uint64_t> numbers;
  uint64_t after = 0;
  while (true) {
    const auto page = cluster.loop().Records(kDrained, after, 4);
    ASSERT_TRUE(page.ok());
    ASSERT_LE(page->size(), 4u);
    if (page->empty()) break;
    for (const JobRecord& record : *page) numbers.push_back(record.number);
    after = numbers.back();
  }
  ASSERT_EQ(numbers.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(numbers[i], all[i].number);
  EXPECT_TRUE(absl::IsNotFound(cluster.loop().Records("nobody", 0, 4).status()));
}

}  // namespace
}  // namespace stagecoach
