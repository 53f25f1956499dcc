#include "coordinator/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "coordinator/job/view/record_page.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.File("journal.sqlite"); }
  std::unique_ptr<Journal> Open() { return Journal::Open(path()).value(); }
  TemporaryFolder folder_;
};

std::vector<JournalJob> JobsOf(Journal& journal) {
  std::vector<JournalJob> jobs;
  EXPECT_TRUE(journal.EachJob([&jobs](const JournalJob& job) { jobs.push_back(job); }).ok());
  return jobs;
}

JobRecord Record(uint64_t number, JobRecord::Kind kind = JobRecord::Kind::kStep) {
  JobRecord record;
  record.number = number;
  record.kind = kind;
  record.step = 10 * number;
  record.message = "m";
  record.loss = 1.0 / static_cast<double>(number);
  return record;
}

TEST_F(JournalTest, NamesARecordItCannotRead) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 5.5, "spec", ""}).ok());
  JobRecord strange = Record(2);
  strange.kind = static_cast<JobRecord::Kind>(77);
  const std::vector<JournalUpdate> updates = {{"a", "state", {Record(1), strange}}};
  ASSERT_TRUE(journal->Write(updates).ok());
  const absl::StatusOr<std::vector<JobRecord>> before = journal->Records("a", 0, 10);
  ASSERT_TRUE(before.ok()) << before.status() << ": what stands before it can be read";
  EXPECT_EQ(before->size(), 1u);
  EXPECT_THAT(journal->Records("a", 1, 10).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("record 2 of job a has kind 77")));
}

TEST_F(JournalTest, ARecordWhoseBitsChangedEndsWhatCanBeRead) {
  for (const char* change :
       {"loss = loss + 1", "message = 'n'", "step = 21", "bubble = -bubble", "skipped = 1"}) {
    const TemporaryFolder folder;
    const std::string path = folder.File("journal.sqlite");
    std::unique_ptr<Journal> journal = Journal::Open(path).value();
    ASSERT_TRUE(journal->AddJob({"a", 1, 5.5, "spec", ""}).ok());
    JobRecord second = Record(2);
    second.bubble = 0.25;
    second.gradient_norm = std::nan("");
    second.learning_rate = -0.0;
    second.measures = {{"accuracy", 0.1}, {"top_5", std::nan("")}};
    const std::vector<JournalUpdate> updates = {{"a", "state", {Record(1), second}}};
    ASSERT_TRUE(journal->Write(updates).ok());
    EXPECT_EQ(journal->Records("a", 0, 10)->size(), 2u);
    {
      auto database = Database::Open(path);
      ASSERT_TRUE(database.ok());
      ASSERT_TRUE((*database)
                      ->Execute(absl::StrCat("UPDATE records SET ", change, " WHERE number = 2"))
                      .ok());
    }
    EXPECT_EQ(journal->Records("a", 0, 10)->size(), 1u) << change;
    const absl::Status status = journal->Records("a", 1, 10).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << change << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("record 2 of job a has another checksum"));
  }
}

TEST_F(JournalTest, AnotherFormatIsRefusedByItsNumber) {
  Open();
  auto database = Database::Open(path());
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE((*database)->Execute("UPDATE meta SET value = 2 WHERE key = 'format'").ok());
  EXPECT_THAT(
      Journal::Open(path()).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("format 2, this program reads 1")));
}

TEST_F(JournalTest, RaisesTheTermWithEveryStart) {
  EXPECT_EQ(Open()->RaiseTerm().value(), 1u);
  EXPECT_EQ(Open()->RaiseTerm().value(), 2u);
  EXPECT_EQ(Open()->RaiseTerm(100, 7).value(), 100u) << "by the clock";
  EXPECT_EQ(Open()->RaiseTerm(100, 7).value(), 108u) << "the clock stands or went back";
}

TEST_F(JournalTest, ReadsBackWhatAnEarlierProcessWrote) {
  {
    std::unique_ptr<Journal> journal = Open();
    ASSERT_TRUE(journal->AddJob({"b", 1, 5.5, "spec b", ""}).ok());
    ASSERT_TRUE(journal->AddJob({"a", 2, 6.5, "spec a", ""}).ok());
    JobRecord record = Record(1, JobRecord::Kind::kFinished);
    record.unix_seconds = 1.25;
    record.phase = JobPhase::kFailed;
    record.loss = std::nan("");
    record.gradient_norm = INFINITY;
    record.skipped = true;
    record.nonfinite_steps = 3;
    record.weights_digest = "sha256:x";
    record.measures = {{"accuracy", 1.0 / 3}, {"top_5", 1}};
    const std::vector<JournalUpdate> updates = {{"b", "state b", {record}}};
    ASSERT_TRUE(journal->Write(updates).ok());
  }
  std::unique_ptr<Journal> journal = Open();
  const std::vector<JournalJob> jobs = JobsOf(*journal);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].id, "b") << "in the order of submission";
  EXPECT_EQ(jobs[0].state, "state b");
  EXPECT_EQ(jobs[1].spec, "spec a");
  const JobRecord back = journal->Records("b", 0, 10).value().at(0);
  EXPECT_EQ(back.kind, JobRecord::Kind::kFinished);
  EXPECT_EQ(back.phase, JobPhase::kFailed);
  EXPECT_TRUE(std::isnan(back.loss));
  EXPECT_TRUE(std::isinf(back.gradient_norm));
  EXPECT_TRUE(back.skipped);
  EXPECT_EQ(back.weights_digest, "sha256:x");
  EXPECT_EQ(back.measures, (std::vector<Measure>{{"accuracy", 1.0 / 3}, {"top_5", 1}}));
  EXPECT_EQ(journal->LastNumber("b").value(), 1u);
  EXPECT_EQ(journal->LastNumber("a").value(), 0u);
}

TEST_F(JournalTest, OwnersGoWithTheirJobsAndAreNotInherited) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", "", "user/ann"}).ok());
  ASSERT_TRUE(journal->AddJob({"b", 2, 0, "x", "", "user/bob"}).ok());
  ASSERT_TRUE(journal->AddJob({"c", 3, 0, "x", ""}).ok());
  journal.reset();
  journal = Open();
  std::vector<std::string> owners;
  for (const JournalJob& job : JobsOf(*journal)) owners.push_back(job.owner);
  EXPECT_EQ(owners, (std::vector<std::string>{"user/ann", "user/bob", ""}));

  const std::vector<std::string> gone = {"a"};
  EXPECT_EQ(journal->Purge(gone, 100).value(), 1);
  ASSERT_TRUE(journal->AddJob({"a", 10, 0, "x", ""}).ok());
  owners.clear();
  for (const JournalJob& job : JobsOf(*journal)) owners.push_back(job.id + " " + job.owner);
  EXPECT_EQ(owners, (std::vector<std::string>{"b user/bob", "c ", "a "}));
}

TEST_F(JournalTest, OnlyItsOwnerReadsIt) {
  const mode_t before = umask(0);
  const std::unique_ptr<Journal> journal = Open();
  umask(before);
  for (const char* const beside : {"", "-wal", "-shm"}) {
    struct stat found;
    ASSERT_EQ(stat((path() + beside).c_str(), &found), 0) << beside;
    EXPECT_EQ(found.st_mode & 0777, 0600) << beside;
  }
}

TEST_F(JournalTest, ASecretIsKeptAndADamagedOneIsRefused) {
  const std::string first = Open()->secret();
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(Open()->secret(), first);
  for (const char* const damage : {"'abc'", "x'00ff'", "1.5"}) {
    auto damaged = Database::Open(path());
    ASSERT_TRUE(damaged.ok()) << damaged.status();
    const std::string set =
        absl::StrCat("UPDATE meta SET value = ", damage, " WHERE key = 'secret_");
    ASSERT_TRUE((*damaged)->Execute("CREATE TABLE kept AS SELECT * FROM meta").ok());
    ASSERT_TRUE((*damaged)->Execute(set + "1'").ok());
    EXPECT_EQ(Journal::Open(path()).status().code(), absl::StatusCode::kDataLoss) << damage;
    ASSERT_TRUE((*damaged)->Execute("REPLACE INTO meta SELECT * FROM kept; DROP TABLE kept").ok());
  }
  EXPECT_EQ(Open()->secret(), first);
  const auto told =
      Journal::Open(path() + ".new", [bits = uint64_t{6}]() mutable { return ++bits; });
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ((*told)->secret(), "00000000000000070000000000000008");
}

TEST_F(JournalTest, RefusesASecondJobUnderTheSameId) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  EXPECT_FALSE(journal->AddJob({"a", 2, 0, "y", ""}).ok());
  EXPECT_EQ(JobsOf(*journal).size(), 1u);
}

TEST_F(JournalTest, WritesAllOfAnUpdateOrNothing) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  const std::vector<JournalUpdate> bad = {{"a", "new", {Record(1), Record(1)}}};
  EXPECT_FALSE(journal->Write(bad).ok());
  EXPECT_EQ(JobsOf(*journal)[0].state, "");
  EXPECT_TRUE(journal->Records("a", 0, 10).value().empty());
  const std::vector<JournalUpdate> good = {{"a", "new", {Record(1)}}};
  EXPECT_TRUE(journal->Write(good).ok()) << "the failed one left no transaction open";
}

TEST_F(JournalTest, KeepsWhatIsShownEachForItself) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  EXPECT_EQ(journal->Shown("a")->pictures, "") << "nothing yet";
  const auto write = [&](const ShownTexts& shown) {
    const std::vector<JournalUpdate> updates = {{"a", "", {}, shown}};
    ASSERT_TRUE(journal->Write(updates).ok());
  };
  write({.pictures = "p"});
  write({.answers = "1"});
  write({.answers = "2"});
  write({});
  EXPECT_EQ(journal->Shown("a")->pictures, "p");
  EXPECT_EQ(journal->Shown("a")->answers, "2");
  EXPECT_EQ(journal->Shown("b")->answers, "");
}

TEST_F(JournalTest, PagesThroughRecordsByNumber) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  std::vector<JournalUpdate> updates = {{"a", "", {}}};
  for (uint64_t n = 1; n <= 9; ++n) updates[0].records.push_back(Record(n));
  ASSERT_TRUE(journal->Write(updates).ok());
  const std::vector<JobRecord> page = journal->Records("a", 4, 3).value();
  ASSERT_EQ(page.size(), 3u);
  EXPECT_EQ(page[0].number, 5u);
  EXPECT_EQ(page[2].number, 7u);
}

TEST_F(JournalTest, ThinsOldStepsAndKeepsEverythingElse) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  std::vector<JournalUpdate> updates = {{"a", "", {}}};
  for (uint64_t n = 1; n <= 100; ++n) {
    const bool save = n % 10 == 0;
    updates[0].records.push_back(
        Record(n, save ? JobRecord::Kind::kCheckpoint : JobRecord::Kind::kStep));
  }
  ASSERT_TRUE(journal->Write(updates).ok());
  ASSERT_TRUE(journal->Thin("a", 100).ok());
  EXPECT_EQ(journal->Records("a", 0, 1000).value().size(), 100u);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(journal->Thin("a", 50).ok());
  const std::vector<JobRecord> left = journal->Records("a", 0, 1000).value();
  EXPECT_LE(left.size(), 50u) << "thinning again goes on where it stopped";
  int saves = 0;
  for (const JobRecord& record : left) saves += record.kind == JobRecord::Kind::kCheckpoint;
  EXPECT_EQ(saves, 10);
  EXPECT_EQ(left.back().number, 100u);
}

JobRecord Written(uint64_t number, const std::string& text) {
  JobRecord record = Record(number, JobRecord::Kind::kWritten);
  record.written = {{.line = 2, .offset = 3, .text = text, .done = true, .score = -0.1}};
  return record;
}

TEST_F(JournalTest, TextsComeBackAsTheyWereWrittenAndAreNeverThinned) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  std::vector<JournalUpdate> updates = {{"a", "", {}}};
  for (uint64_t n = 1; n <= 3000; ++n) updates[0].records.push_back(Written(n, "\xff\n"));
  ASSERT_TRUE(journal->Write(updates).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(journal->Thin("a", 50).ok());
  const std::vector<JobRecord> left = journal->Records("a", 0, 9999).value();
  ASSERT_EQ(left.size(), 3000u);
  for (const JobRecord& record : left) {
    ASSERT_EQ(record.written, updates[0].records[record.number - 1].written);
    ASSERT_TRUE(record.measures.empty());
  }
}

TEST_F(JournalTest, APageOfLongTextsEndsAfterAMebibyte) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  std::vector<JournalUpdate> updates = {{"a", "", {}}};
  for (uint64_t n = 1; n <= 9; ++n) {
    updates[0].records.push_back(Written(n, std::string(size_t{1} << (n == 9 ? 22 : 18), 'a')));
  }
  ASSERT_TRUE(journal->Write(updates).ok());
  const std::vector<JobRecord> page = journal->Records("a", 0, 100).value();
  EXPECT_EQ(page.size(), 4u);
  EXPECT_TRUE(IsFullPage(page, 100)) << "there may be more";
  EXPECT_EQ(journal->Records("a", 0, 3)->size(), 3u);
  const std::vector<JobRecord> last = journal->Records("a", 8, 100).value();
  ASSERT_EQ(last.size(), 1u) << "one at least";
  EXPECT_EQ(last[0].written[0].text.size(), size_t{1} << 22);
}

TEST_F(JournalTest, TextsWhoseBitsChangedEndWhatCanBeRead) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  const std::vector<JournalUpdate> updates = {{"a", "", {Written(1, "one"), Written(2, "two")}}};
  ASSERT_TRUE(journal->Write(updates).ok());
  auto database = Database::Open(path());
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)
                  ->Execute("UPDATE records SET measures = replace(measures, 'dHdv', 'dHdw') "
                            "WHERE number = 2")
                  .ok());
  EXPECT_EQ(journal->Records("a", 0, 10)->size(), 1u);
  EXPECT_THAT(journal->Records("a", 1, 10).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("record 2 of job a")));
}

TEST_F(JournalTest, RefusesAFileThatIsNoJournal) {
  folder_.Write("journal.sqlite", std::string(10000, 'x'));
  const absl::Status status = Journal::Open(path()).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr(path()), HasSubstr("restore it from a backup"))));
  EXPECT_THAT(Journal::Open("/no/such/folder/journal.sqlite").status().message(),
              HasSubstr("/no/such/folder"));
}

TEST_F(JournalTest, RecordsAreTextWhateverIsOnDisk) {
  std::unique_ptr<Journal> journal = Open();
  ASSERT_TRUE(journal->AddJob({"a", 1, 0, "x", ""}).ok());
  std::vector<JournalUpdate> updates = {{"a", "", {Record(1)}}};
  updates[0].records[0].message = "/data/\xff: gone \x1b[2J";
  ASSERT_TRUE(journal->Write(updates).ok());
  EXPECT_EQ(journal->Records("a", 0, 9).value().at(0).message, R"(/data/\xff: gone \x1b[2J)");
}

// A removal is on disk until the job's own entry goes, in the same transaction.
TEST_F(JournalTest, ARemovalIsKnownUntilTheJobIsPurged) {
  std::unique_ptr<Journal> journal = Open();
  for (const char* job : {"a", "b"}) {
    ASSERT_TRUE(journal->AddJob({job, job[0] == 'a' ? 1u : 2u, 0, "x", ""}).ok());
  }
  EXPECT_THAT(journal->Removals().value(), ElementsAre());
  ASSERT_TRUE(journal->BeginRemoval("b").ok());
  ASSERT_TRUE(journal->BeginRemoval("b").ok()) << "again";
  journal = nullptr;
  journal = Open();
  EXPECT_THAT(journal->Removals().value(), ElementsAre("b"));
  const std::vector<std::string> purged = {"b"};
  EXPECT_EQ(journal->Purge(purged, 100).value(), 1);
  EXPECT_THAT(journal->Removals().value(), ElementsAre());
}

}  // namespace
}  // namespace stagecoach
