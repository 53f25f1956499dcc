// Symptom: after a downgrade, or with one damaged row, the coordinator did not start: "job spec in
// the journal: ...", and no job of the cluster could run. Cause: reading the journal stopped at the
// first entry that could not be decoded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "coordinator/journal/database.h"
#include "coordinator/journal/row_checksums.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Row {
  std::string spec, state;
  friend bool operator==(const Row&, const Row&) = default;
};

Row ReadRow(SimulatedCluster& cluster, const std::string& id) {
  std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
  Statement query =
      Statement::Prepare(*database, "SELECT spec, state FROM jobs WHERE id = ?").value();
  EXPECT_TRUE(query.Bind(id).Step().value());
  return {query.Text(0), query.Text(1)};
}

// With the checksums that it has to have.
void WriteRow(SimulatedCluster& cluster, const std::string& id, const Row& row) {
  std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
  Statement query =
      Statement::Prepare(*database, "SELECT sequence, submitted, owner FROM jobs WHERE id = ?")
          .value();
  ASSERT_TRUE(query.Bind(id).Step().value());
  const uint32_t entry = EntryChecksum(id, static_cast<uint64_t>(query.Integer(0)), query.Real(1),
                                       row.spec, query.Text(2));
  Statement update = Statement::Prepare(*database,
                                        "UPDATE jobs SET spec = ?, state = ?, entry_crc = ?, "
                                        "state_crc = ? WHERE id = ?")
                         .value();
  ASSERT_TRUE(update.Bind(row.spec)
                  .Bind(row.state)
                  .Bind(int64_t{entry})
                  .Bind(int64_t{TextChecksum(id, row.state)})
                  .Bind(id)
                  .Run()
                  .ok());
}

TEST(BrokenEntryTest, IsSetAsideAndTheOtherJobsGoOn) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("ended", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd("ended"));
  ASSERT_TRUE(cluster.Submit("live", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("live").step == 4; }));
  const std::string digest = cluster.View("ended").weights_digest;

  cluster.CrashCoordinator();
  const Row good = ReadRow(cluster, "ended");
  for (const Row& broken : {Row{"{\"a newer version's field\":1", good.state},
                            Row{good.spec, "{\"phase\":77}"}, Row{good.spec, "x"}}) {
    WriteRow(cluster, "ended", broken);
    cluster.StartCoordinator();
    const JobView view = cluster.View("ended");
    EXPECT_EQ(view.phase, JobPhase::kFailed);
    EXPECT_THAT(view.message, AllOf(HasSubstr("DATA_LOSS"), HasSubstr("kept as it is")));
    EXPECT_GE(cluster.loop().List().jobs.size(), 2u) << "it is listed";
    const absl::Status taken = cluster.Submit("ended", SmallJob(1)).status();
    EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
    EXPECT_NE(cluster.Submit("", SmallJob(2))->id, "ended");
    cluster.CrashCoordinator();
    EXPECT_EQ(ReadRow(cluster, "ended"), broken) << "nothing of it is lost";
  }

  WriteRow(cluster, "ended", good);  // as an upgrade reads it
  cluster.StartCoordinator();
  EXPECT_EQ(cluster.View("ended").phase, JobPhase::kSucceeded);
  EXPECT_EQ(cluster.View("ended").weights_digest, digest);
  ASSERT_TRUE(cluster.RunToEnd("live"));
  EXPECT_EQ(cluster.View("live").weights_digest, digest) << "the same job, the same bits";
}

// `resume` said "is failed, which stays so", and the client that it had no steps left to do.
TEST(BrokenEntryTest, AResumeSaysThatTheEntryCannotBeRead) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd("a"));
  cluster.CrashCoordinator();
  WriteRow(cluster, "a", {ReadRow(cluster, "a").spec, "{\"phase\":77}"});
  cluster.StartCoordinator();
  EXPECT_TRUE(cluster.View("a").set_aside);
  const absl::Status status = cluster.loop().Resume("a", 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("job a cannot be resumed: DATA_LOSS"), HasSubstr("phase 77"),
                    HasSubstr("submit its spec under another name with resume: {job: a}")));
}

// Clients were told no more than "the coordinator's log has the details".
TEST(BrokenEntryTest, AWatchNamesTheRecordThatItCannotRead) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd("a"));
  cluster.CrashCoordinator();
  {
    std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
    ASSERT_TRUE(database->Execute("UPDATE records SET kind = 77 WHERE number = 5").ok());
  }
  cluster.StartCoordinator();
  std::optional<absl::Status> ended;
  std::vector<uint64_t> told;
  cluster.loop().Watch(
      1000, "a", 0,
      [&told](const JobRecord& record) {
        told.push_back(record.number);
        return true;
      },
      [&ended](const absl::Status& status) { ended = status; });
  const auto named = AllOf(HasSubstr("job a: its history cannot be read on from here"),
                           HasSubstr(absl::StrCat("journal ", cluster.journal_path())),
                           HasSubstr("record 5 of job a has kind 77"),
                           HasSubstr("start the version that wrote it"));
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(*ended)) << *ended << ": a code whose reason clients get";
  EXPECT_THAT(ended->message(), named);
  EXPECT_EQ(told, (std::vector<uint64_t>{1, 2, 3, 4})) << "what stands before it";
  EXPECT_EQ(cluster.loop().Records("a", 0, 10).value().size(), 4u);
  const absl::Status read = cluster.loop().Records("a", 4, 10).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_THAT(read.message(), named);
  EXPECT_TRUE(cluster.loop().Records("a", 5, 10).ok());
}

// Bits of the journal that changed on the disk were served as they were.
TEST(BrokenEntryTest, AChangedBitOfASpecOrAStateSetsTheJobAside) {
  for (const char* change :
       {"spec = spec || ' '", "state = replace(state, '\"step\":7', '\"step\":3')",
        "submitted = submitted + 1"}) {
    SimulatedCluster cluster(2);
    ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
    ASSERT_TRUE(cluster.RunToEnd("a"));
    cluster.CrashCoordinator();
    {
      std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
      ASSERT_TRUE(database->Execute(absl::StrCat("UPDATE jobs SET ", change)).ok());
    }
    cluster.StartCoordinator();
    EXPECT_TRUE(cluster.View("a").set_aside) << change;
    EXPECT_THAT(cluster.View("a").message,
                AllOf(HasSubstr("another checksum"), HasSubstr("restore the journal")));
  }
}

// A -wal that was cut short took the entry of a job with it, and nobody said so.
TEST(BrokenEntryTest, AStartNamesJobsWhoseFoldersAreThereAndWhoseEntriesAreNot) {
  SimulatedCluster cluster(2);
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(cluster.Submit(id, SmallJob(2)).ok());
    ASSERT_TRUE(cluster.RunToEnd(id));
  }
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  EXPECT_TRUE(cluster.unknown_jobs.empty());
  cluster.CrashCoordinator();
  {
    std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
    ASSERT_TRUE(database->Execute("DELETE FROM jobs WHERE id = 'b'").ok());
  }
  cluster.StartCoordinator();
  EXPECT_EQ(cluster.unknown_jobs, std::vector<std::string>{"b"});
}

// One id that was no text, and no list of jobs could be read.
TEST(BrokenEntryTest, AnIdThatIsNoTextIsShownAndBreaksNoList) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.Submit("b", SmallJob(2)).ok());
  cluster.CrashCoordinator();
  {
    std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
    ASSERT_TRUE(
        database->Execute("UPDATE jobs SET id = CAST(X'61FF1B5B324A' AS TEXT) WHERE id = 'a'")
            .ok());
  }
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.RunToEnd("b"));
  std::vector<std::string> ids;
  for (const auto& view : cluster.loop().List().jobs) {
    ids.push_back(view->id);
    EXPECT_EQ(ShownText(view->message), view->message);
  }
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre("b", "a\\xff\\x1b[2J"));
}

}  // namespace
}  // namespace stagecoach
