// Symptom: a coordinator that ran for months held the spec of every job that it ever had, in memory
// and in the journal, and 60 specs of 123 KiB took 895 MB. Cause: nothing was ever forgotten, and a
// spec was kept as a value and as a text, by its job and by each view of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/journal/database.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Ids(const JobLoop::Page& page) {
  std::vector<std::string> ids;
  for (const auto& view : page.jobs) ids.push_back(view->id);
  return ids;
}

class EndedJobsTest : public WholeJobsTest {
 protected:
  // It waits for stages that never come, until it is cancelled.
  void Cancelled(const std::string& id) {
    ASSERT_TRUE(cluster_->Start(SmallJob(5), id).Cancel(id).ok());
    cluster_->End(JobPhase::kCancelled, id);
  }
  std::unique_ptr<Database> Journal() { return Database::Open(cluster_->journal_path()).value(); }
  int64_t Count(const std::string& of) {
    const auto database = Journal();
    Statement query = Statement::Prepare(*database, "SELECT COUNT(*) FROM " + of).value();
    EXPECT_TRUE(query.Step().value());
    return query.Integer(0);
  }
  std::vector<std::string> Listed() { return Ids(cluster_->loop().List()); }
  void UntilListed(size_t jobs) {
    EXPECT_TRUE(cluster_->RunUntil([&] { return Listed().size() == jobs; }));
  }
};

TEST_F(EndedJobsTest, TheOldestGoOnceThereAreTooMany) {
  options_.keep_ended_jobs = 3;
  Begin(2).Start(SmallJob(2), "first").Digest("first");
  cluster_->Start(SmallJob(5), "live");
  for (int i = 0; i < 5; ++i) Cancelled(absl::StrCat("job-", i));
  UntilListed(4);
  EXPECT_THAT(Listed(), ElementsAre("job-4", "job-3", "job-2", "live"));
  EXPECT_TRUE(absl::IsNotFound(cluster_->loop().Get("first").status()));
  EXPECT_TRUE(absl::IsNotFound(cluster_->loop().Records("first", 0, 10).status()));
  EXPECT_EQ(Count("jobs"), 4);
  EXPECT_EQ(Count("records WHERE job NOT IN (SELECT id FROM jobs)"), 0);
  EXPECT_EQ(Count("shown WHERE job NOT IN (SELECT id FROM jobs)"), 0);

  // What it left on disk stays, keeps its name, and can be gone on from.
  EXPECT_EQ(cluster_->store().List("first").size(), 2u);
  EXPECT_TRUE(cluster_->files().Exists("/state/exports/first/model.safetensors"));
  const absl::Status taken = cluster_->Submit("first", SmallJob(2)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  JobSpec more = SmallJob(2);
  more.training.steps = 9;
  more.resume.job = "first";
  cluster_->Start(more, "more").Digest("more");
}

TEST_F(EndedJobsTest, TheOldestGoOnceTheyAreTooOld) {
  options_.keep_ended_days = 2;
  options_.lease_seconds = 3600;  // few heartbeats: days take no time
  Begin(1);
  Cancelled("a");
  cluster_->Wait(86400);
  Cancelled("b");
  cluster_->Wait(86400 - 7200);
  EXPECT_EQ(Listed().size(), 2u) << "not yet";
  cluster_->Wait(14400);
  EXPECT_THAT(Listed(), ElementsAre("b"));
}

TEST_F(EndedJobsTest, ZeroDaysAreForEver) {
  options_.keep_ended_days = 0;
  options_.lease_seconds = 86400;
  Begin(1);
  Cancelled("a");
  cluster_->Wait(400.0 * 86400);
  EXPECT_THAT(Listed(), ElementsAre("a"));
}

// The loop's other work goes on between the batches, and a crash in between loses nothing else.
TEST_F(EndedJobsTest, ALongHistoryGoesInBatchesAndAlsoOverARestart) {
  options_.keep_ended_jobs = 1;
  Begin(2);
  Cancelled("long");
  cluster_->CrashCoordinator();
  ASSERT_TRUE(Journal()
                  ->Execute("WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n "
                            "WHERE i < 3599) INSERT INTO records SELECT job, i, kind, "
                            "unix_seconds, step, phase, message, loss, learning_rate, "
                            "gradient_norm, tokens_per_second, step_seconds, bubble, "
                            "bubble_ideal, skipped, nonfinite_steps, weights_digest, measures, -1 "
                            "FROM records, n WHERE number = 1 AND job = 'long'")
                  .ok());
  cluster_->StartCoordinator();
  Cancelled("new");
  std::set<int64_t> left;
  ASSERT_TRUE(cluster_->RunUntil([&] {
    left.insert(Count("records WHERE job = 'long'"));
    return left.size() == 3;
  }));
  cluster_->RestartCoordinator();
  UntilListed(1);
  EXPECT_THAT(Listed(), ElementsAre("new"));
  EXPECT_EQ(Count("records WHERE job = 'long'"), 0);
}

TEST_F(EndedJobsTest, AListIsReadInPagesThatNewJobsDoNotMove) {
  Begin(0);
  for (int i = 0; i < 5; ++i) cluster_->Start(SmallJob(2), absl::StrCat("job-", i));
  ASSERT_TRUE(cluster_->Cancel("job-2").ok());
  const JobLoop::Page newest = cluster_->loop().List(JobLoop::kNewest, 2);
  EXPECT_THAT(Ids(newest), ElementsAre("job-4", "job-3"));
  cluster_->Start(SmallJob(2), "job-5");
  const JobLoop::Page next = cluster_->loop().List(newest.next, 2);
  EXPECT_THAT(Ids(next), ElementsAre("job-2", "job-1"));
  const JobLoop::Page last = cluster_->loop().List(next.next, 2);
  EXPECT_THAT(Ids(last), ElementsAre("job-0"));
  EXPECT_EQ(last.next, 0u);
}

// Counted by who shares it, for a process's memory is not so exact.
TEST_F(EndedJobsTest, ASpecIsInMemoryOnceAndOnlyUntilItsJobEnds) {
  Begin(1).Start().Wait(1);
  std::weak_ptr<const JobSpec> spec = cluster_->View(kJob).spec;
  ASSERT_FALSE(spec.expired());
  EXPECT_EQ(cluster_->View(kJob).spec.get(), spec.lock().get()) << "every view has the same";
  ASSERT_TRUE(cluster_->Cancel(kJob).ok());
  cluster_->End(JobPhase::kCancelled);
  cluster_->loop().Tick(cluster_->now());
  EXPECT_TRUE(spec.expired());
  EXPECT_EQ(cluster_->View(kJob).spec, nullptr);
  EXPECT_EQ(cluster_->View(kJob).summary.name, "small");
  EXPECT_EQ(cluster_->loop().SpecText(kJob).value(), ListCodec().Encode(SmallJob(2)));
}

TEST_F(EndedJobsTest, TheSpecsOfUnfinishedJobsHaveALimitTogether) {
  const auto bytes = static_cast<int64_t>(ListCodec().Encode(SmallJob(2)).size());
  options_.max_spec_bytes = 3 * bytes;
  Begin(1);
  for (const char* id : {"a", "b", "c"}) cluster_->Start(SmallJob(2), id);
  const absl::Status refused = cluster_->Submit("d", SmallJob(2)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr(absl::StrCat("spec: has ", bytes,
                             " bytes as it is kept, those of unfinished jobs have ", 3 * bytes)));
  EXPECT_TRUE(cluster_->Submit("a", SmallJob(2)).ok()) << "to repeat one is harmless";
  ASSERT_TRUE(cluster_->Cancel("a").ok());
  cluster_->loop().Tick(cluster_->now());
  EXPECT_TRUE(cluster_->Submit("d", SmallJob(2)).ok());
  cluster_->RestartCoordinator();
  EXPECT_FALSE(cluster_->Submit("e", SmallJob(2)).ok()) << "those from the journal count";

  // Those that are being checked count as well, and no more once they are answered.
  ASSERT_TRUE(cluster_->Cancel("b").ok());
  cluster_->loop().Tick(cluster_->now());
  std::vector<absl::Status> answers;
  for (const char* id : {"f", "g"}) {
    cluster_->loop().Submit(id, SmallJob(2), [&answers](const absl::StatusOr<JobView>& view) {
      answers.push_back(view.status());
    });
  }
  ASSERT_TRUE(cluster_->RunUntil([&] { return answers.size() == 2; }));
  EXPECT_TRUE(absl::IsResourceExhausted(answers[0])) << "the second one, refused at once";
  EXPECT_TRUE(answers[1].ok()) << answers[1];
}

// Cancelled submissions were checked, expanded into networks and kept as jobs all the same.
TEST_F(EndedJobsTest, ASubmissionThatNobodyWaitsForIsNotAccepted) {
  Begin(1).check_seconds = 1;  // they stand in line
  std::map<std::string, absl::Status> answers;
  bool waits = true;
  for (const char* id : {"a", "b"}) {
    cluster_->loop().Submit(
        id, SmallJob(2),
        [&answers, id](const absl::StatusOr<JobView>& view) { answers[id] = view.status(); },
        [&waits, left = std::string(id) == "b"] { return waits || !left; });
  }
  waits = false;
  ASSERT_TRUE(cluster_->RunUntil([&] { return answers.size() == 2; }));
  EXPECT_TRUE(answers["a"].ok()) << answers["a"];
  EXPECT_TRUE(absl::IsCancelled(answers["b"])) << answers["b"];
  EXPECT_THAT(Listed(), ElementsAre("a"));
}

}  // namespace
}  // namespace stagecoach
