#include "coordinator/journal/merged_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "coordinator/journal/journal.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MergedRunsTest : public ::testing::Test {
 protected:
  MergedRunsTest() { folder_.MakeFolder("merged"); }

  // A run with a job of so many steps; each has its loss.
  std::string Run(const std::string& name, const std::string& job, double submitted, int steps,
                  double loss) {
    const std::string run = folder_.MakeFolder(name);
    std::unique_ptr<Journal> journal = Journal::Open(run + "/journal.sqlite").value();
    EXPECT_TRUE(journal->AddJob({job, 7, submitted, "spec of " + name, ""}).ok());
    JournalUpdate update{.job = job, .state = "state of " + name};
    update.shown.answers = "answers of " + name;
    for (int step = 1; step <= steps; ++step) {
      JobRecord record;
      record.number = static_cast<uint64_t>(step);
      record.loss = loss;
      update.records.push_back(record);
    }
    EXPECT_TRUE(journal->Write({&update, 1}).ok());
    return run;
  }

  std::vector<std::string> Merge(const std::vector<std::string>& runs) {
    const auto left_out = MergeRuns(runs, folder_.File("merged"));
    EXPECT_TRUE(left_out.ok()) << left_out.status();
    merged_ = Journal::Open(folder_.File("merged/journal.sqlite")).value();
    return *left_out;
  }
  std::vector<std::string> Jobs() {
    std::vector<std::string> lines;
    EXPECT_TRUE(merged_
                    ->EachJob([&](const JournalJob& job) {
                      EXPECT_TRUE(job.intact);
                      lines.push_back(absl::StrCat(job.id, ": ", job.spec, ", ", job.state));
                    })
                    .ok());
    return lines;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Journal> merged_;
};

TEST_F(MergedRunsTest, HasTheJobsOfAllInTheOrderOfTheirSubmission) {
  const std::string late = Run("late", "b", 20, 3, 0.5), early = Run("early", "a", 10, 2500, 0.25);
  EXPECT_THAT(Merge({late, early}), IsEmpty());
  EXPECT_THAT(Jobs(),
              ElementsAre("a: spec of early, state of early", "b: spec of late, state of late"));
  EXPECT_EQ(merged_->LastNumber("a").value(), 2500u) << "more than are read at a time";
  EXPECT_EQ(merged_->Records("a", 2499, 10)->front().loss, 0.25);
  EXPECT_EQ(merged_->Records("b", 0, 10)->size(), 3u);
  EXPECT_EQ(merged_->Shown("b")->answers, "answers of late");
}

TEST_F(MergedRunsTest, JobsOfOneIdGoByTheirRunsNames) {
  EXPECT_THAT(Merge({Run("tiny-1", "tiny", 1, 1, 1), Run("tiny-2", "tiny", 2, 1, 2),
                     Run("My run", "tiny", 3, 1, 3), Run("another", "tiny-2", 4, 1, 4)}),
              IsEmpty());
  EXPECT_THAT(
      Jobs(),
      ElementsAre(HasSubstr("tiny-1: spec of tiny-1"), HasSubstr("tiny-3: spec of tiny-2"),
                  HasSubstr("tiny-4: spec of My run"), HasSubstr("tiny-2: spec of another")));
  EXPECT_EQ(merged_->Records("tiny-4", 0, 10)->front().loss, 3);
}

TEST_F(MergedRunsTest, ARunThatCannotBeReadIsLeftOutWithItsReason) {
  const std::string good = Run("good", "a", 1, 1, 1), none = folder_.MakeFolder("none");
  const std::string garbage = folder_.File("garbage");
  folder_.Write("garbage/journal.sqlite", std::string(9000, 'x'));
  const std::string changed = Run("changed", "c", 2, 1, 1);
  {
    auto database = Database::Open(changed + "/journal.sqlite").value();
    ASSERT_TRUE(database->Execute("UPDATE jobs SET spec = 'another'").ok());
  }
  EXPECT_THAT(Merge({none, garbage, changed, good}),
              ElementsAre(AllOf(HasSubstr("/none"), HasSubstr("No such file")),
                          HasSubstr("/garbage"), HasSubstr("run changed")));
  EXPECT_THAT(Jobs(), ElementsAre(HasSubstr("a: spec of good")));
}

TEST_F(MergedRunsTest, ARunsOwnFolderIsNotWrittenTo) {
  const std::string run = Run("run", "a", 1, 1, 1);
  const auto files = [&] {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(run)) {
      all[entry.path().filename().string()] = FileText(entry.path());
    }
    return all;
  };
  const auto before = files();
  Merge({run});
  EXPECT_EQ(files(), before);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("merged/run-0.sqlite")));
}

}  // namespace
}  // namespace stagecoach
