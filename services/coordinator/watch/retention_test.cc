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

TEST(ChooseRemovalsTest, TakesTheOldOnes) {
  EXPECT_THAT(ChooseRemovals(kJobs, {.days = 3}, 10 * kOneDay), ElementsAre("old", "mid"));
  EXPECT_THAT(ChooseRemovals(kJobs, {.days = 9}, 10 * kOneDay), IsEmpty());  // to the second
  EXPECT_THAT(ChooseRemovals(kJobs, {}, 1e9), IsEmpty());
}

TEST(ChooseRemovalsTest, TakesTheFirstUntilTheRestFits) {
  EXPECT_THAT(ChooseRemovals(kJobs, {.bytes = 60}, 0), IsEmpty());
  EXPECT_THAT(ChooseRemovals(kJobs, {.bytes = 59}, 0), ElementsAre("old"));
  EXPECT_THAT(ChooseRemovals(kJobs, {.bytes = 30}, 0), ElementsAre("old"));
  EXPECT_THAT(ChooseRemovals(kJobs, {.bytes = 29}, 0), ElementsAre("old", "mid"));
  EXPECT_THAT(ChooseRemovals(kJobs, {.bytes = 1}, 0), ElementsAre("old", "mid", "new"));
}

TEST(ChooseRemovalsTest, AgeAndSizeTogether) {
  EXPECT_THAT(ChooseRemovals(kJobs, {.days = 8, .bytes = 30}, 10 * kOneDay), ElementsAre("old"));
  EXPECT_THAT(ChooseRemovals(kJobs, {.days = 8, .bytes = 29}, 10 * kOneDay),
              ElementsAre("old", "mid"));
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
    if (id == "mid") last.set_value();
    return id == "old" ? absl::FailedPreconditionError("in use") : absl::OkStatus();
  };
  source.now_seconds = [] { return 0.0; };
  {
    const Retention retention({.bytes = 1}, source);
    last.get_future().wait();
  }
  EXPECT_THAT(asked, ElementsAre("old", "mid"));
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
