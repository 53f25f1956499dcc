// Symptom: one user's jobs took all places there are, waiting and ended, and the others' were refused, or forgotten with
// their checkpoints left behind. Cause: limits were the cluster's alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/testing/simulated_cluster.h"

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
                                     ", and together they may have ", 2 * bytes)));
  EXPECT_TRUE(SubmitAs(cluster, kBob, "c").ok());
}

// What a user had in line took the room of all, though no job of it was accepted yet.
TEST(UsersShareTest, OneUsersSpecsInLineLeaveRoomForOthers) {
  const auto bytes = static_cast<int64_t>(ListCodec().Encode(SmallJob(7)).size());
  JobManagerOptions options;
  options.max_spec_bytes = 8 * bytes;
  SimulatedCluster cluster(0, options);
  cluster.check_seconds = 10;
  std::map<std::string, absl::Status> answers;
  for (const char* id : {"a", "b", "c"}) {
    cluster.loop().Submit(
        id, SmallJob(7),
        [&answers, id](const absl::StatusOr<JobView>& view) { answers[id] = view.status(); },
        nullptr, kAnn);
  }
  ASSERT_EQ(answers.size(), 1u) << "the first two are being checked";
  EXPECT_TRUE(absl::IsResourceExhausted(answers["c"])) << answers["c"];
  EXPECT_TRUE(SubmitAs(cluster, kBob, "d").ok());
  EXPECT_TRUE(cluster.RunUntil([&] { return answers.size() == 3; }));
  EXPECT_TRUE(answers["a"].ok()) << answers["a"];
  EXPECT_TRUE(answers["b"].ok()) << answers["b"];
}

// It was told to try again later, and could have done so for ever.
TEST(UsersShareTest, ASpecThatIsTooLargeForAnyShareIsRefusedForGood) {
  const auto bytes = static_cast<int64_t>(ListCodec().Encode(SmallJob(7)).size());
  JobManagerOptions options;
  options.max_spec_bytes = 4 * (bytes - 1);
  SimulatedCluster cluster(0, options);
  const absl::Status refused = SubmitAs(cluster, kAnn, "a");
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no room at any time"));
  EXPECT_TRUE(SubmitAs(cluster, kOperator, "a").ok());
}

TEST(UsersShareTest, OneUsersRequestsForPlansLeavePlacesForOthers) {
  SimulatedCluster cluster(0);
  cluster.check_seconds = 1;
  std::vector<absl::Status> answers;
  const auto ask = [&](const JobCaller& caller) {
    cluster.loop().PlanJob(
        SmallJob(2),
        [&answers](const absl::StatusOr<Plan>& plan) { answers.push_back(plan.status()); }, nullptr,
        caller);
  };
  for (int i = 0; i < 65; ++i) ask(kAnn);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(answers[0])) << answers[0];
  EXPECT_TRUE(absl::IsResourceExhausted(SubmitAs(cluster, kAnn, "a"))) << "it is planned, too";
  ask(kBob);
  EXPECT_TRUE(cluster.RunUntil([&] { return answers.size() == 66; }));
  EXPECT_TRUE(answers.back().ok()) << answers.back();
  EXPECT_TRUE(SubmitAs(cluster, kAnn, "a").ok()) << "when they are answered";
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

TEST(UsersShareTest, OfUsersWithAsManyEndedJobsTheOldestIsForgotten) {
  JobManagerOptions options;
  options.keep_ended_jobs = 2;
  SimulatedCluster cluster(1, options);
  const auto end = [&](const JobCaller& caller, const std::string& id) {
    ASSERT_TRUE(SubmitAs(cluster, caller, id).ok()) << id;
    ASSERT_TRUE(cluster.Cancel(id).ok()) << id;
    ASSERT_TRUE(cluster.RunUntil([&] { return IsTerminal(cluster.View(id).phase); })) << id;
    ASSERT_TRUE(cluster.RunUntil([&] { return cluster.loop().List().jobs.size() <= 2; })) << id;
    cluster.RunUntil([] { return false; }, 1);
  };
  end(kBob, "b");
  end(kAnn, "a");
  end(kOperator, "o");
  std::vector<std::string> left;
  for (const auto& view : cluster.loop().List().jobs) left.push_back(view->id);
  EXPECT_THAT(left, ElementsAre("o", "a"));
}

}  // namespace
}  // namespace stagecoach
