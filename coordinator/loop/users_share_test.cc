// Symptom: one user's jobs took all places there are, waiting and ended, and the others' were refused, or forgotten with
// their checkpoints left behind. Cause: limits were the cluster's alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/loop/simulated_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const JobCaller kAnn = {"user/ann", true};
const JobCaller kBob = {"user/bob", true};
const JobCaller kOperator = {"operator/olga", false};

absl::Status SubmitAs(SimulatedCluster& cluster, const JobCaller& caller, const std::string& id,
                      const JobSpec& spec = SmallJob(7)) {
  std::optional<absl::Status> answer;
  cluster.loop().Submit(
      id, spec, [&answer](const absl::StatusOr<JobView>& view) { answer = view.status(); }, nullptr,
      caller);
  cluster.RunUntil([&] { return answer.has_value(); });
  return answer.value_or(absl::DeadlineExceededError("no answer"));
}

TEST(UsersShareTest, OneUsersJobsLeavePlacesForOthers) {
  JobManagerOptions options;
  options.max_jobs = 8;
  SimulatedCluster cluster(0, options);
  EXPECT_TRUE(SubmitAs(cluster, kAnn, "a").ok());
  EXPECT_TRUE(SubmitAs(cluster, kAnn, "b").ok());
  const absl::Status refused = SubmitAs(cluster, kAnn, "c");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("2 jobs of user/ann wait or run already"));
  EXPECT_TRUE(SubmitAs(cluster, kBob, "c").ok());
  for (const char* id : {"d", "e", "f"}) EXPECT_TRUE(SubmitAs(cluster, kOperator, id).ok()) << id;
  ASSERT_TRUE(cluster.Cancel("a").ok());
  EXPECT_TRUE(SubmitAs(cluster, kAnn, "g").ok()) << "what has ended does not count";
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  EXPECT_TRUE(absl::IsResourceExhausted(SubmitAs(cluster, kAnn, "h"))) << "whose they are is kept";
}

TEST(UsersShareTest, OneUsersSpecsLeaveRoomForOthers) {
  const auto bytes = static_cast<int64_t>(ListCodec().Encode(SmallJob(7)).size());
  JobManagerOptions options;
  options.max_spec_bytes = 8 * bytes;
  SimulatedCluster cluster(0, options);
  EXPECT_TRUE(SubmitAs(cluster, kAnn, "a").ok());
  EXPECT_TRUE(SubmitAs(cluster, kAnn, "b").ok());
  const absl::Status refused = SubmitAs(cluster, kAnn, "c");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("those of the unfinished jobs of user/ann have ", 2 * bytes,
                                     ", and together a user's may have ", 2 * bytes)));
  EXPECT_TRUE(SubmitAs(cluster, kBob, "c").ok());
}

// Whose jobs were forgotten could not go on from their checkpoints any more.
TEST(UsersShareTest, OneUsersEndedJobsDoNotPushOutTheOthers) {
  JobManagerOptions options;
  options.keep_ended_jobs = 3;
  SimulatedCluster cluster(1, options);
  const auto ended = [&](const JobCaller& caller, const std::string& id) {
    EXPECT_TRUE(SubmitAs(cluster, caller, id).ok()) << id;
    EXPECT_TRUE(cluster.Cancel(id).ok()) << id;
    EXPECT_TRUE(cluster.RunUntil([&] { return IsTerminal(cluster.View(id).phase); })) << id;
    EXPECT_TRUE(cluster.RunUntil([&] { return cluster.loop().List().jobs.size() <= 3; })) << id;
  };
  ended(kBob, "b");
  for (int i = 0; i < 6; ++i) ended(kAnn, absl::StrCat("a-", i));
  std::vector<std::string> left;
  for (const auto& view : cluster.loop().List().jobs) left.push_back(view->id);
  EXPECT_THAT(left, ElementsAre("a-5", "a-4", "b"));
}

}  // namespace
}  // namespace stagecoach
