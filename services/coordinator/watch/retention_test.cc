#include "services/coordinator/watch/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <string>
#include <vector>

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kOneDay = 86400;
const std::vector<EndedJob> kJobs = {
    {"new", 9 * kOneDay, 10}, {"old", kOneDay, 30}, {"mid", 5 * kOneDay, 20}};

// All that go, one after the other.
std::vector<std::string> Removals(const RetentionLimits& limits, double now_seconds) {
  std::vector<EndedJob> jobs = kJobs;
  std::vector<std::string> removed;
  while (const auto id = NextRemoval(jobs, {}, limits, now_seconds)) {
    removed.push_back(*id);
    std::erase_if(jobs, [&id](const EndedJob& job) { return job.id == *id; });
  }
  return removed;
}

TEST(NextRemovalTest, TakesTheOldOnes) {
  EXPECT_THAT(Removals({.days = 3}, 10 * kOneDay), ElementsAre("old", "mid"));
  EXPECT_THAT(Removals({.days = 9}, 10 * kOneDay), IsEmpty());  // to the second
  EXPECT_THAT(Removals({}, 1e9), IsEmpty());
}

TEST(NextRemovalTest, TakesTheFirstUntilTheRestFits) {
  EXPECT_THAT(Removals({.bytes = 60}, 0), IsEmpty());
  EXPECT_THAT(Removals({.bytes = 59}, 0), ElementsAre("old"));
  EXPECT_THAT(Removals({.bytes = 30}, 0), ElementsAre("old"));
  EXPECT_THAT(Removals({.bytes = 29}, 0), ElementsAre("old", "mid"));
  EXPECT_THAT(Removals({.bytes = 1}, 0), ElementsAre("old", "mid", "new"));
}

TEST(NextRemovalTest, AgeAndSizeTogether) {
  EXPECT_THAT(Removals({.days = 8, .bytes = 30}, 10 * kOneDay), ElementsAre("old"));
  EXPECT_THAT(Removals({.days = 8, .bytes = 29}, 10 * kOneDay), ElementsAre("old", "mid"));
}

TEST(NextRemovalTest, WhatIsInUseStillCounts) {
  EXPECT_EQ(NextRemoval(kJobs, {"old"}, {.bytes = 59}, 0), "mid");
  EXPECT_EQ(NextRemoval(kJobs, {"old", "mid", "new"}, {.bytes = 1}, 0), std::nullopt);
}

TEST(RetentionTest, RemovesAtOnceAndPassesOverWhatIsInUse) {
  std::vector<std::string> asked;
  std::promise<void> last;
  Retention::Source source;
  source.ended = [] {
    std::vector<EndedJob> jobs = kJobs;
    for (EndedJob& job : jobs) job.bytes = 0;
    return jobs;
  };
  source.bytes = [](const std::string& id) {
    return std::map<std::string, int64_t>{{"old", 3}, {"mid", 2}, {"new", 1}}.at(id);
  };
  source.remove = [&](const std::string& id) -> absl::Status {
    asked.push_back(id);
    if (id == "new") last.set_value();
    return id == "old" ? absl::FailedPreconditionError("in use") : absl::OkStatus();
  };
  source.now_seconds = [] { return 0.0; };
  {
    const Retention retention({.bytes = 1}, source);
    last.get_future().wait();
  }
  EXPECT_THAT(asked, ElementsAre("old", "mid", "new"));
}

TEST(RetentionTest, ExportsAreSweptWithoutLimitsOfJobs) {
  std::promise<double> swept;
  Retention::Source source;
  source.ended = [] {
    ADD_FAILURE() << "jobs were asked for";
    return kJobs;
  };
  source.sweep_exports = [&swept](double now) { swept.set_value(now); };
  source.now_seconds = [] { return 7.0; };
  const Retention retention({}, source);
  EXPECT_EQ(swept.get_future().get(), 7);
}

TEST(RetentionTest, AsksForSizesOnlyIfTheyCount) {
  std::promise<void> removed;
  Retention::Source source;
  source.ended = [] { return kJobs; };
  source.bytes = [](const std::string&) -> int64_t {
    ADD_FAILURE() << "files were looked at";
    return 0;
  };
  source.remove = [&](const std::string& id) {
    EXPECT_EQ(id, "old");
    removed.set_value();
    return absl::OkStatus();
  };
  source.now_seconds = [] { return 10 * kOneDay; };
  const Retention retention({.days = 8}, source);
  removed.get_future().wait();
}

}  // namespace
}  // namespace stagecoach
