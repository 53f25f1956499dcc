// Symptom: a coordinator that ran for months held the spec of every job that it ever had, in memory and in
// the journal, and 60 specs of 123 KiB took 895 MB. Cause: nothing was ever forgotten, and a spec
// was kept as a value and as a text, by its job and by each view of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coordinator/journal/database.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Ids(const JobLoop::Page& page) {
  std::vector<std::string> ids;
  for (const auto& view : page.jobs) ids.push_back(view->id);
  return ids;
}

int64_t Count(SimulatedCluster& cluster, const std::string& of) {
  std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
  Statement query = Statement::Prepare(*database, "SELECT COUNT(*) FROM " + of).value();
  EXPECT_TRUE(query.Step().value());
  return query.Integer(0);
}

// They wait for stages that never come, until they are cancelled.
void Cancelled(SimulatedCluster& cluster, const std::string& id) {
  ASSERT_TRUE(cluster.Submit(id, SmallJob(5)).ok());
  ASSERT_TRUE(cluster.Cancel(id).ok());
  ASSERT_TRUE(cluster.RunToEnd(id));
}

TEST(EndedJobsTest, TheOldestGoOnceThereAreTooMany) {
  JobManagerOptions options;
  options.keep_ended_jobs = 3;
  SimulatedCluster cluster(2, options);
  ASSERT_TRUE(cluster.Submit("first", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunToEnd("first"));
  ASSERT_TRUE(cluster.Submit("live", SmallJob(5)).ok());
  for (int i = 0; i < 5; ++i) {
    Cancelled(cluster, absl::StrCat("job-", i));
    ASSERT_FALSE(HasFatalFailure());
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.loop().List().jobs.size() == 4; }));
  EXPECT_THAT(Ids(cluster.loop().List()), ElementsAre("job-4", "job-3", "job-2", "live"));
  EXPECT_TRUE(absl::IsNotFound(cluster.loop().Get("first").status()));
  EXPECT_TRUE(absl::IsNotFound(cluster.loop().Records("first", 0, 10).status()));
  EXPECT_EQ(Count(cluster, "jobs"), 4);
  EXPECT_EQ(Count(cluster, "records WHERE job NOT IN (SELECT id FROM jobs)"), 0);
  EXPECT_EQ(Count(cluster, "shown WHERE job NOT IN (SELECT id FROM jobs)"), 0);

  // What it left on disk stays, keeps its name, and can be gone on from.
  EXPECT_EQ(cluster.store().List("first").size(), 2u);
  EXPECT_TRUE(cluster.files().Exists("/state/exports/first/model.safetensors"));
  const absl::Status taken = cluster.Submit("first", SmallJob(2)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  JobSpec more = SmallJob(2);
  more.training.steps = 9;
  more.resume_job = "first";
  ASSERT_TRUE(cluster.Submit("more", more).ok());
  ASSERT_TRUE(cluster.RunToEnd("more"));
  EXPECT_EQ(cluster.View("more").phase, JobPhase::kSucceeded) << cluster.View("more").message;
}

void Wait(SimulatedCluster& cluster, double seconds) {
  cluster.RunUntil([] { return false; }, seconds);
}

TEST(EndedJobsTest, TheOldestGoOnceTheyAreTooOld) {
  JobManagerOptions options;
  options.keep_ended_days = 2;
  options.lease_seconds = 3600;  // few heartbeats: days take no time
  SimulatedCluster cluster(1, options);
  Cancelled(cluster, "a");
  Wait(cluster, 86400);
  Cancelled(cluster, "b");
  Wait(cluster, 86400 - 7200);
  EXPECT_EQ(Ids(cluster.loop().List()).size(), 2u) << "not yet";
  Wait(cluster, 14400);
  EXPECT_THAT(Ids(cluster.loop().List()), ElementsAre("b"));
}

TEST(EndedJobsTest, ZeroDaysAreForEver) {
  JobManagerOptions options;
  options.keep_ended_days = 0;
  options.lease_seconds = 86400;
  SimulatedCluster cluster(1, options);
  Cancelled(cluster, "a");
  Wait(cluster, 400.0 * 86400);
  EXPECT_THAT(Ids(cluster.loop().List()), ElementsAre("a"));
}

// The loop's other work goes on between the batches, and a crash in between loses nothing else.
TEST(EndedJobsTest, ALongHistoryGoesInBatchesAndAlsoOverARestart) {
  JobManagerOptions options;
  options.keep_ended_jobs = 1;
  SimulatedCluster cluster(2, options);
  Cancelled(cluster, "long");
  cluster.CrashCoordinator();
  {
    std::unique_ptr<Database> database = Database::Open(cluster.journal_path()).value();
    ASSERT_TRUE(
        database
            ->Execute("WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n "
                      "WHERE i < 3599) INSERT INTO records SELECT job, i, kind, "
                      "unix_seconds, step, phase, message, loss, learning_rate, "
                      "gradient_norm, tokens_per_second, step_seconds, bubble, "
                      "bubble_ideal, skipped, nonfinite_steps, weights_digest, measures, -1 "
                      "FROM records, n WHERE number = 1 AND job = 'long'")
            .ok());
  }
  cluster.StartCoordinator();
  Cancelled(cluster, "new");
  std::set<int64_t> left;
  ASSERT_TRUE(cluster.RunUntil([&] {
    left.insert(Count(cluster, "records WHERE job = 'long'"));
    return left.size() == 3;
  }));
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.loop().List().jobs.size() == 1; }));
  EXPECT_EQ(Ids(cluster.loop().List()), (std::vector<std::string>{"new"}));
  EXPECT_EQ(Count(cluster, "records WHERE job = 'long'"), 0);
}

TEST(EndedJobsTest, AListIsReadInPagesThatNewJobsDoNotMove) {
  SimulatedCluster cluster(0);
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(cluster.Submit(absl::StrCat("job-", i), SmallJob(2)).ok());
  ASSERT_TRUE(cluster.Cancel("job-2").ok());
  const JobLoop::Page newest = cluster.loop().List(JobLoop::kNewest, 2);
  EXPECT_THAT(Ids(newest), ElementsAre("job-4", "job-3"));
  ASSERT_TRUE(cluster.Submit("job-5", SmallJob(2)).ok());
  const JobLoop::Page next = cluster.loop().List(newest.next, 2);
  EXPECT_THAT(Ids(next), ElementsAre("job-2", "job-1"));
  const JobLoop::Page last = cluster.loop().List(next.next, 2);
  EXPECT_THAT(Ids(last), ElementsAre("job-0"));
  EXPECT_EQ(last.next, 0u);
}

// Counted by who shares it, for a process's memory is not so exact.
TEST(EndedJobsTest, ASpecIsInMemoryOnceAndOnlyUntilItsJobEnds) {
  SimulatedCluster cluster(1);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  Wait(cluster, 1);
  std::weak_ptr<const JobSpec> spec = cluster.View("a").spec;
  ASSERT_FALSE(spec.expired());
  EXPECT_EQ(cluster.View("a").spec.get(), spec.lock().get()) << "every view has the same";
  ASSERT_TRUE(cluster.Cancel("a").ok());
  ASSERT_TRUE(cluster.RunToEnd("a"));
  cluster.loop().Tick(cluster.now());
  EXPECT_TRUE(spec.expired());
  EXPECT_EQ(cluster.View("a").spec, nullptr);
  EXPECT_EQ(cluster.View("a").summary.name, "small");
  EXPECT_EQ(cluster.loop().SpecText("a").value(), ListCodec().Encode(SmallJob(2)));
}

TEST(EndedJobsTest, TheSpecsOfUnfinishedJobsHaveALimitTogether) {
  const auto bytes = static_cast<int64_t>(ListCodec().Encode(SmallJob(2)).size());
  JobManagerOptions options;
  options.max_spec_bytes = 3 * bytes;
  SimulatedCluster cluster(1, options);
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(cluster.Submit(id, SmallJob(2)).ok());
  const absl::Status refused = cluster.Submit("d", SmallJob(2)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("spec: has ", bytes,
                                     " bytes as it is kept, those of "
                                     "unfinished jobs have ",
                                     3 * bytes)));
  EXPECT_TRUE(cluster.Submit("a", SmallJob(2)).ok()) << "to repeat one is harmless";
  ASSERT_TRUE(cluster.Cancel("a").ok());
  cluster.loop().Tick(cluster.now());
  EXPECT_TRUE(cluster.Submit("d", SmallJob(2)).ok());
  cluster.CrashCoordinator();
  cluster.StartCoordinator();
  EXPECT_FALSE(cluster.Submit("e", SmallJob(2)).ok()) << "those from the journal count";

  // Those that are being checked count as well, and no more once they are answered.
  ASSERT_TRUE(cluster.Cancel("b").ok());
  cluster.loop().Tick(cluster.now());
  std::vector<absl::Status> answers;
  for (const char* id : {"f", "g"}) {
    cluster.loop().Submit(id, SmallJob(2), [&answers](const absl::StatusOr<JobView>& view) {
      answers.push_back(view.status());
    });
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return answers.size() == 2; }));
  EXPECT_TRUE(absl::IsResourceExhausted(answers[0])) << "the second one, refused at once";
  EXPECT_TRUE(answers[1].ok()) << answers[1];
}

// Cancelled submissions were checked, expanded into networks and kept as jobs all the same.
TEST(EndedJobsTest, ASubmissionThatNobodyWaitsForIsNotAccepted) {
  SimulatedCluster cluster(1);
  cluster.check_seconds = 1;  // they stand in line
  std::map<std::string, absl::Status> answers;
  auto waits = std::make_shared<bool>(true);
  for (const char* id : {"a", "b"}) {
    cluster.loop().Submit(
        id, SmallJob(2),
        [&answers, id](const absl::StatusOr<JobView>& view) { answers[id] = view.status(); },
        [waits, left = std::string(id) == "b"] { return *waits || !left; });
  }
  *waits = false;
  ASSERT_TRUE(cluster.RunUntil([&] { return answers.size() == 2; }));
  EXPECT_TRUE(answers["a"].ok()) << answers["a"];
  EXPECT_TRUE(absl::IsCancelled(answers["b"])) << answers["b"];
  EXPECT_THAT(Ids(cluster.loop().List()), ElementsAre("a"));
}

}  // namespace
}  // namespace stagecoach
