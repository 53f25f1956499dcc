#include "services/coordinator/stages/data_grants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing/manual_clock.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;
const std::string kSet(64, 'a');
const std::string kWeights(64, 'b');

JobSpec Spec() {
  JobSpec spec;
  spec.data = TextData{.path = absl::StrCat("store:/data/", kSet, "/a.txt")};
  spec.initialize.from = absl::StrCat("store:/data/", kWeights, "/model.safetensors");
  return spec;
}

class DataGrantsTest : public ::testing::Test {
 protected:
  // The grants of a run at that time; each of them is good then.
  int Run(const StagePeer& stage, const std::string& job) {
    DataGrants::Grants granted;
    grants_.ForRun(stage, job, &granted);
    for (const v1::DataGrant& grant : granted) {
      EXPECT_TRUE(objects_.Check(grant.grant(), grant.folder(), ObjectGrants::Use::kRead).ok());
    }
    return granted.size();
  }

  ManualClock clock_{kHour};
  ObjectGrants objects_{&clock_};
  DataGrants grants_{&objects_, /*unproven=*/false, &clock_};
  const StagePeer one_{"stage-0", "a:1"}, two_{"stage-1", "b:1"};
};

TEST_F(DataGrantsTest, ALoadHasOneForEachSetOfTheJob) {
  DataGrants::Grants granted;
  grants_.ForLoad(one_, "job", Spec(), &granted);
  ASSERT_EQ(granted.size(), 2);
  EXPECT_EQ(granted[0].data_set(), kSet);
  EXPECT_EQ(granted[0].folder(), absl::StrCat("data/sets/", kSet));
  EXPECT_EQ(granted[1].data_set(), kWeights);
  const auto check = [&](ObjectGrants::Use use) {
    return objects_.Check(granted[0].grant(), granted[0].folder(), use).ok();
  };
  EXPECT_TRUE(check(ObjectGrants::Use::kRead));
  EXPECT_FALSE(check(ObjectGrants::Use::kWrite));
}

TEST_F(DataGrantsTest, RunsGetThemAgainInTime) {
  DataGrants::Grants granted;
  grants_.ForLoad(one_, "job", Spec(), &granted);
  clock_.AdvanceNanos(kHour / 2);
  grants_.ForLoad(two_, "job", Spec(), &granted);
  EXPECT_EQ(Run(one_, "job"), 0);
  double last = clock_.MonotonicSeconds(), longest = 0;
  for (int minutes = 0; minutes < 24 * 60; minutes += 7) {
    if (Run(one_, "job") > 0) {
      longest = std::max(longest, clock_.MonotonicSeconds() - last);
      last = clock_.MonotonicSeconds();
    }
    clock_.AdvanceNanos(7 * kHour / 60);
  }
  EXPECT_GT(longest, 0);
  EXPECT_LE(longest, 2 * 3600);
  EXPECT_EQ(Run(two_, "job"), 2) << "each stage by itself";
  EXPECT_EQ(Run(two_, "job"), 0);
}

TEST_F(DataGrantsTest, AnotherJobOfTheStageHasItsOwn) {
  DataGrants::Grants granted;
  grants_.ForLoad(one_, "job", Spec(), &granted);
  clock_.AdvanceNanos(3 * kHour);
  EXPECT_EQ(Run(one_, "other"), 0);
  JobSpec plain;
  plain.data = TextData{.path = "/data/a.txt"};
  granted.Clear();
  grants_.ForLoad(one_, "other", plain, &granted);
  EXPECT_EQ(granted.size(), 0);
  EXPECT_EQ(Run(one_, "job"), 0);
  grants_.ForLoad(one_, "job", Spec(), &granted);
  grants_.Forget(one_);
  clock_.AdvanceNanos(3 * kHour);
  EXPECT_EQ(Run(one_, "job"), 0);
}

}  // namespace
}  // namespace stagecoach
