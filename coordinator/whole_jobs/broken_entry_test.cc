// Symptom: after a downgrade, or with one damaged row, the coordinator did not start: "job spec in
// the journal: ...", and no job of the cluster could run. Cause: reading the journal stopped at the
// first entry that could not be decoded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "coordinator/journal/database.h"
#include "coordinator/journal/row_checksums.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct Row {
  std::string spec, state;
  friend bool operator==(const Row&, const Row&) = default;
};

class BrokenEntryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Database> Journal() { return Database::Open(cluster_.journal_path()).value(); }

  // While no coordinator runs.
  Row ReadRow() {
    const auto database = Journal();
    Statement query =
        Statement::Prepare(*database, "SELECT spec, state FROM jobs WHERE id = ?").value();
    EXPECT_TRUE(query.Bind(kJob).Step().value());
    return {query.Text(0), query.Text(1)};
  }
  // With the checksums that it has to have.
  void WriteRow(const Row& row) {
    const auto database = Journal();
    Statement query =
        Statement::Prepare(*database, "SELECT sequence, submitted, owner FROM jobs WHERE id = ?")
            .value();
    ASSERT_TRUE(query.Bind(kJob).Step().value());
    const uint32_t entry = EntryChecksum(kJob, static_cast<uint64_t>(query.Integer(0)),
                                         query.Real(1), row.spec, query.Text(2));
    Statement update = Statement::Prepare(*database,
                                          "UPDATE jobs SET spec = ?, state = ?, entry_crc = ?, "
                                          "state_crc = ? WHERE id = ?")
                           .value();
    ASSERT_TRUE(update.Bind(row.spec)
                    .Bind(row.state)
                    .Bind(int64_t{entry})
                    .Bind(int64_t{TextChecksum(kJob, row.state)})
                    .Bind(kJob)
                    .Run()
                    .ok());
  }
  // The next coordinator finds a journal in which this was done.
  void RestartAfter(const std::string& sql) {
    cluster_.CrashCoordinator();
    ASSERT_TRUE(Journal()->Execute(sql).ok()) << sql;
    cluster_.StartCoordinator();
  }

  TestCluster cluster_{2};
};

TEST_F(BrokenEntryTest, IsSetAsideAndTheOtherJobsGoOn) {
  const std::string digest = cluster_.Start().Digest();
  cluster_.Start(SmallJob(2), "live").UntilStep(4, "live").CrashCoordinator();
  const Row good = ReadRow();
  for (const Row& broken : {Row{"{\"a newer version's field\":1", good.state},
                            Row{good.spec, "{\"phase\":77}"}, Row{good.spec, "x"}}) {
    WriteRow(broken);
    cluster_.StartCoordinator();
    EXPECT_EQ(cluster_.Phase(), JobPhase::kFailed);
    EXPECT_THAT(cluster_.Message(), AllOf(HasSubstr("DATA_LOSS"), HasSubstr("kept as it is")));
    EXPECT_GE(cluster_.loop().List().jobs.size(), 2u) << "it is listed";
    const absl::Status taken = cluster_.Submit(kJob, SmallJob(1)).status();
    EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
    EXPECT_NE(cluster_.Submit("", SmallJob(2))->id, kJob);
    cluster_.CrashCoordinator();
    EXPECT_EQ(ReadRow(), broken) << "nothing of it is lost";
  }
  WriteRow(good);  // as an upgrade reads it
  cluster_.StartCoordinator();
  EXPECT_EQ(cluster_.Phase(), JobPhase::kSucceeded);
  EXPECT_EQ(cluster_.View(kJob).weights_digest, digest);
  EXPECT_EQ(cluster_.Digest("live"), digest) << "the same job, the same bits";
}

// `resume` said "is failed, which stays so", and the client that it had no steps left to do.
TEST_F(BrokenEntryTest, AResumeSaysThatTheEntryCannotBeRead) {
  cluster_.Start().Digest();
  cluster_.CrashCoordinator();
  WriteRow({ReadRow().spec, "{\"phase\":77}"});
  cluster_.StartCoordinator();
  EXPECT_TRUE(cluster_.View(kJob).set_aside);
  const absl::Status status = cluster_.loop().Resume(kJob, 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("job small-1 cannot be resumed: DATA_LOSS"), HasSubstr("phase 77"),
                    HasSubstr("submit its spec under another name with resume: {job: small-1}")));
}

// Clients were told no more than "the coordinator's log has the details".
TEST_F(BrokenEntryTest, AWatchNamesTheRecordThatItCannotRead) {
  cluster_.Start().Digest();
  RestartAfter("UPDATE records SET kind = 77 WHERE number = 5");
  std::optional<absl::Status> ended;
  std::vector<uint64_t> told;
  cluster_.loop().Watch(
      1000, kJob, 0,
      [&told](const JobRecord& record) {
        told.push_back(record.number);
        return true;
      },
      [&ended](const absl::Status& status) { ended = status; });
  ASSERT_TRUE(ended.has_value());
  EXPECT_THAT(told, ElementsAre(1, 2, 3, 4)) << "what stands before it";
  EXPECT_EQ(cluster_.loop().Records(kJob, 0, 10).value().size(), 4u);
  for (const absl::Status& status : {*ended, cluster_.loop().Records(kJob, 4, 10).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status))
        << status << ": a code whose reason clients get";
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("job small-1: its history cannot be read on from here"),
                      HasSubstr(absl::StrCat("journal ", cluster_.journal_path())),
                      HasSubstr("record 5 of job small-1 has kind 77"),
                      HasSubstr("start the version that wrote it")));
  }
  EXPECT_TRUE(cluster_.loop().Records(kJob, 5, 10).ok());
}

// Bits of the journal that changed on the disk were served as they were.
TEST_F(BrokenEntryTest, AChangedBitOfASpecOrAStateSetsTheJobAside) {
  cluster_.Start().Digest();
  for (const auto& [change, back] : std::vector<std::pair<const char*, const char*>>{
           {"spec = spec || ' '", "spec = rtrim(spec)"},
           {"state = replace(state, '\"step\":7', '\"step\":3')",
            "state = replace(state, '\"step\":3', '\"step\":7')"},
           {"submitted = submitted + 1", "submitted = submitted - 1"}}) {
    RestartAfter(absl::StrCat("UPDATE jobs SET ", change));
    EXPECT_TRUE(cluster_.View(kJob).set_aside) << change;
    EXPECT_THAT(cluster_.Message(),
                AllOf(HasSubstr("another checksum"), HasSubstr("restore the journal")));
    RestartAfter(absl::StrCat("UPDATE jobs SET ", back));
    EXPECT_FALSE(cluster_.View(kJob).set_aside) << back;
  }
}

// A -wal that was cut short took the entry of a job with it, and nobody said so.
TEST_F(BrokenEntryTest, AStartNamesJobsWhoseFoldersAreThereAndWhoseEntriesAreNot) {
  cluster_.Start().Digest();
  cluster_.Start(SmallJob(2), "b").Digest("b");
  cluster_.RestartCoordinator();
  EXPECT_TRUE(cluster_.unknown_jobs.empty());
  RestartAfter("DELETE FROM jobs WHERE id = 'b'");
  EXPECT_THAT(cluster_.unknown_jobs, ElementsAre("b"));
}

// One id that was no text, and no list of jobs could be read.
TEST_F(BrokenEntryTest, AnIdThatIsNoTextIsShownAndBreaksNoList) {
  cluster_.Start(SmallJob(2), "a").Start(SmallJob(2), "b");
  RestartAfter("UPDATE jobs SET id = CAST(X'61FF1B5B324A' AS TEXT) WHERE id = 'a'");
  cluster_.Digest("b");
  std::vector<std::string> ids;
  for (const auto& view : cluster_.loop().List().jobs) {
    ids.push_back(view->id);
    EXPECT_EQ(ShownText(view->message), view->message);
  }
  EXPECT_THAT(ids, UnorderedElementsAre("b", "a\\xff\\x1b[2J"));
}

}  // namespace
}  // namespace stagecoach
