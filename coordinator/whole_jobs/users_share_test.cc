// Symptom: one user's jobs took all places there are, waiting and ended, and the others' were
// refused, or forgotten with their checkpoints left behind. Cause: limits were the cluster's alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_is.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const JobCaller kAnn = {"user/ann", true};
const JobCaller kBob = {"user/bob", true};
const JobCaller kOperator = {"operator/olga", false};

class UsersShareTest : public WholeJobsTest {
 protected:
  absl::Status Submit(const JobCaller& caller, const std::string& id) {
    return cluster_->Submit(id, SmallJob(7), caller).status();
  }
  void ExpectRefused(const absl::Status& status, const std::string& why) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(why)));
  }
  // Jobs that are submitted and cancelled one by one: those that are left.
  std::vector<std::string> Left(const std::vector<std::pair<JobCaller, std::string>>& jobs) {
    for (const auto& [caller, id] : jobs) {
      EXPECT_TRUE(Submit(caller, id).ok()) << id;
      EXPECT_TRUE(cluster_->Cancel(id).ok()) << id;
      cluster_->End(JobPhase::kCancelled, id);
      const size_t most = static_cast<size_t>(options_.keep_ended_jobs);
      EXPECT_TRUE(cluster_->RunUntil([&] { return cluster_->loop().List().jobs.size() <= most; }));
      cluster_->Wait(1);
    }
    std::vector<std::string> left;
    for (const auto& view : cluster_->loop().List().jobs) left.push_back(view->id);
    return left;
  }

  const int64_t bytes_ = static_cast<int64_t>(ListCodec().Encode(SmallJob(7)).size());
};

TEST_F(UsersShareTest, OneUsersJobsLeavePlacesForOthers) {
  options_.max_jobs = 8;
  Begin(0);
  for (const char* id : {"a", "b"}) EXPECT_TRUE(Submit(kAnn, id).ok());
  ExpectRefused(Submit(kAnn, "c"), "2 jobs of user/ann wait or run already");
  EXPECT_TRUE(Submit(kBob, "c").ok());
  for (const char* id : {"d", "e", "f"}) EXPECT_TRUE(Submit(kOperator, id).ok()) << id;
  ASSERT_TRUE(cluster_->Cancel("a").ok());
  EXPECT_TRUE(Submit(kAnn, "g").ok()) << "what has ended does not count";
  cluster_->RestartCoordinator();
  ExpectRefused(Submit(kAnn, "h"), "user/ann");  // whose they are is kept
}

TEST_F(UsersShareTest, OneUsersSpecsLeaveRoomForOthers) {
  options_.max_spec_bytes = 8 * bytes_;
  Begin(0);
  for (const char* id : {"a", "b"}) EXPECT_TRUE(Submit(kAnn, id).ok());
  ExpectRefused(Submit(kAnn, "c"),
                absl::StrCat("those of the unfinished jobs of user/ann have ", 2 * bytes_,
                             ", and together they may have ", 2 * bytes_));
  EXPECT_TRUE(Submit(kBob, "c").ok());
}

// What a user had in line took the room of all, though no job of it was accepted yet.
TEST_F(UsersShareTest, OneUsersSpecsInLineLeaveRoomForOthers) {
  options_.max_spec_bytes = 8 * bytes_;
  Begin(0).check_seconds = 10;
  std::map<std::string, absl::Status> answers;
  for (const char* id : {"a", "b", "c"}) {
    cluster_->loop().Submit(
        id, SmallJob(7),
        [&answers, id](const absl::StatusOr<JobView>& view) { answers[id] = view.status(); },
        nullptr, kAnn);
  }
  ASSERT_EQ(answers.size(), 1u) << "the first two are being checked";
  EXPECT_TRUE(absl::IsResourceExhausted(answers["c"])) << answers["c"];
  EXPECT_TRUE(Submit(kBob, "d").ok());
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers.size() == 3; }));
  EXPECT_TRUE(answers["a"].ok() && answers["b"].ok()) << answers["a"] << answers["b"];
}

// It was told to try again later, and could have done so for ever.
TEST_F(UsersShareTest, ASpecThatIsTooLargeForAnyShareIsRefusedForGood) {
  options_.max_spec_bytes = 4 * (bytes_ - 1);
  Begin(0);
  EXPECT_THAT(Submit(kAnn, "a"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("no room at any time"),
                             HasSubstr("divide the lines of `write` among several jobs"))));
  EXPECT_TRUE(Submit(kOperator, "a").ok());
}

TEST_F(UsersShareTest, OneUsersRequestsForPlansLeavePlacesForOthers) {
  Begin(0).check_seconds = 1;
  std::vector<absl::Status> answers;
  const auto ask = [&](const JobCaller& caller) {
    cluster_->loop().PlanJob(
        SmallJob(2),
        [&answers](const absl::StatusOr<Plan>& plan) { answers.push_back(plan.status()); }, nullptr,
        caller);
  };
  for (int i = 0; i < 65; ++i) ask(kAnn);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(answers[0])) << answers[0];
  EXPECT_TRUE(absl::IsResourceExhausted(Submit(kAnn, "a"))) << "it is planned, too";
  ask(kBob);
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers.size() == 66; }));
  EXPECT_TRUE(answers.back().ok()) << answers.back();
  EXPECT_TRUE(Submit(kAnn, "a").ok()) << "when they are answered";
}

// Whose jobs were forgotten could not go on from their checkpoints any more.
TEST_F(UsersShareTest, OneUsersEndedJobsDoNotPushOutTheOthers) {
  options_.keep_ended_jobs = 3;
  Begin(1);
  EXPECT_THAT(
      Left(
          {{kBob, "b"}, {kAnn, "a-0"}, {kAnn, "a-1"}, {kAnn, "a-2"}, {kAnn, "a-3"}, {kAnn, "a-4"}}),
      ElementsAre("a-4", "a-3", "b"));
}

TEST_F(UsersShareTest, OfUsersWithAsManyEndedJobsTheOldestIsForgotten) {
  options_.keep_ended_jobs = 2;
  Begin(1);
  EXPECT_THAT(Left({{kBob, "b"}, {kAnn, "a"}, {kOperator, "o"}}), ElementsAre("o", "a"));
}

}  // namespace
}  // namespace stagecoach
