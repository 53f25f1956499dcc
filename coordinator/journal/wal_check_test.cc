// Symptom: with one flipped byte in the middle of journal.sqlite-wal a restarted coordinator listed
// fewer jobs than it had accepted, and said nothing. Cause: SQLite takes the first frame that does
// not fit for the end of the log.
#include "coordinator/journal/wal_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "coordinator/journal/journal.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kJobs = 12;
constexpr size_t kFrame = 24 + 4096;

class WalCheckTest : public ::testing::Test {
 protected:
  // A journal with a transaction a job that are all in the log, as a coordinator that is killed
  // leaves it.
  WalCheckTest() {
    const std::string living = folder_.File("living.sqlite");
    const std::unique_ptr<Journal> journal = Journal::Open(living).value();
    EXPECT_EQ(journal->RaiseTerm().value(), 1u);
    for (int i = 0; i < kJobs; ++i) {
      EXPECT_TRUE(journal->AddJob({absl::StrCat("job-", i), uint64_t(i), 1.5, "spec", ""}).ok());
    }
    database_ = FileText(living);
    log_ = FileText(living + "-wal");
  }

  // Of a copy with this log.
  absl::StatusOr<int> JobsWith(const std::string& log) const {
    const std::string copy = folder_.Write("copy.sqlite", database_);
    std::filesystem::remove(copy + "-shm");
    folder_.Write("copy.sqlite-wal", log);
    absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(copy);
    if (!journal.ok()) return journal.status();
    int jobs = 0;
    EXPECT_TRUE((*journal)->EachJob([&jobs](const JournalJob&) { ++jobs; }).ok());
    return jobs;
  }
  size_t frames() const { return (log_.size() - 32) / kFrame; }

  TemporaryFolder folder_;
  std::string database_, log_;
};

TEST_F(WalCheckTest, OfAnUndamagedLogAllIsRead) {
  ASSERT_GT(frames(), size_t{kJobs});
  EXPECT_EQ(JobsWith(log_).value(), kJobs);
}

// A crash cuts the log off anywhere, and may leave any of the pages of the last transaction
// unwritten.
TEST_F(WalCheckTest, ALogThatACrashCutOffIsReadAsFarAsItGoes) {
  for (size_t bytes = 0; bytes < log_.size(); bytes += kSanitized ? 4999 : 509) {
    const absl::StatusOr<int> jobs = JobsWith(log_.substr(0, bytes));
    ASSERT_TRUE(jobs.ok() || bytes < 5 * kFrame)
        << bytes << " of " << log_.size() << ": " << jobs.status();
    EXPECT_FALSE(absl::IsDataLoss(jobs.status())) << jobs.status();
  }
  for (size_t back = 1; back <= 2; ++back) {
    std::string log = log_;
    log.replace(log.size() - back * kFrame, kFrame, std::string(kFrame, '\0'));
    const absl::StatusOr<int> jobs = JobsWith(log);
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    EXPECT_EQ(*jobs, kJobs - 1);
  }
}

TEST_F(WalCheckTest, NoJobIsForgottenForAFlippedByteButOfTheLastTransactions) {
  int refused = 0;
  for (size_t at = 0; at < log_.size(); at += at < 64 ? 1 : kSanitized ? 1999 : 211) {
    std::string log = log_;
    log[at] = static_cast<char>(log[at] ^ 0x10);
    const absl::StatusOr<int> jobs = JobsWith(log);
    if (jobs.ok()) {
      EXPECT_GE(*jobs, kJobs - 2) << "byte " << at << " of " << log_.size();
      continue;
    }
    ++refused;
    EXPECT_TRUE(absl::IsDataLoss(jobs.status())) << jobs.status();
    EXPECT_THAT(jobs.status().message(),
                AllOf(HasSubstr("copy.sqlite-wal is damaged"), HasSubstr("from a backup")));
  }
  EXPECT_GT(refused, 30);
}

// Frames of an earlier round stand behind those of this one until they are written over.
TEST_F(WalCheckTest, WhatIsLeftOfAnEarlierLogCountsForNothing) {
  std::string log = log_;
  const size_t earlier = 32 + frames() * 3 / 4 * kFrame;
  for (size_t at = earlier; at < log.size(); at += kFrame) log[at + 11] ^= 1;  // the first salt
  const absl::StatusOr<int> jobs = JobsWith(log);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_GE(*jobs, 2);
  EXPECT_LT(*jobs, kJobs);
}

TEST_F(WalCheckTest, AHeaderThatWasWrittenOverIsNoEmptyLog) {
  std::string log = log_;
  log.replace(0, 32, std::string(32, 'x'));
  EXPECT_TRUE(absl::IsDataLoss(JobsWith(log).status()));
  EXPECT_TRUE(JobsWith(std::string(log_.size(), '\0')).ok()) << "made, and never filled";
}

}  // namespace
}  // namespace stagecoach
