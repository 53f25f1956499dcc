// Removal on request: an ended job goes with all that it has, or stays whole, whatever happens in
// between; checkpoints go unless somebody goes back to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_is.h"
#include "checkpoint/files/folder_bytes.h"
#include "coordinator/journal/database.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

JobSpec ResumesFrom(const std::string& job) {
  JobSpec spec = SmallJob(2);
  spec.training.steps = 9;
  spec.resume.job = job;
  return spec;
}

class RemovalTest : public WholeJobsTest {
 protected:
  // An ended job with checkpoints, exports and records, as the server writes these.
  void Ended(const std::string& id = kJob) {
    cluster_->Start(SmallJob(2), id).Digest(id);
    cluster_->loop().Tick(cluster_->now());  // it retires
    for (const std::string& folder :
         {absl::StrCat("/state/exports/", id, ".step-3"), absl::StrCat("/state/jobs/", id)}) {
      ASSERT_TRUE(cluster_->files().MakeFolders(folder).ok());
      ASSERT_TRUE(cluster_->files().Create(folder + "/file").ok());
      cluster_->files().SetContents(folder + "/file", "bytes");
    }
  }
  void Ask(const std::string& id = kJob) {
    cluster_->loop().RemoveJob(id, [this](absl::StatusOr<JobUsage> freed) { answer_ = freed; });
  }
  absl::StatusOr<JobUsage> Remove(const std::string& id = kJob) {
    answer_.reset();
    Ask(id);
    EXPECT_TRUE(cluster_->RunUntil([this] { return answer_.has_value(); }));
    return *answer_;
  }
  absl::StatusOr<RemovedCheckpoints> RemoveCheckpoints(const std::vector<uint64_t>& steps,
                                                       const std::string& id = kJob) {
    std::optional<absl::StatusOr<RemovedCheckpoints>> answer;
    cluster_->loop().RemoveCheckpoints(
        id, steps, false, [&](absl::StatusOr<RemovedCheckpoints> removed) { answer = removed; });
    EXPECT_TRUE(cluster_->RunUntil([&] { return answer.has_value(); }));
    return *answer;
  }
  int64_t Count(const std::string& of) {
    const auto database = Database::Open(cluster_->journal_path()).value();
    Statement query = Statement::Prepare(*database, "SELECT COUNT(*) FROM " + of).value();
    EXPECT_TRUE(query.Step().value());
    return query.Integer(0);
  }
  int64_t BytesOf(const std::string& id) {
    int64_t bytes = BytesBelow(cluster_->files(), "/checkpoints/" + id);
    for (const char* folder : {"/state/exports/", "/state/jobs/"}) {
      bytes += BytesBelow(cluster_->files(), folder + id);
    }
    return bytes + BytesBelow(cluster_->files(), absl::StrCat("/state/exports/", id, ".step-3"));
  }
  bool IsKnown(const std::string& id = kJob) { return cluster_->loop().Get(id).ok(); }
  void ExpectGone(const std::string& id = kJob) {
    EXPECT_FALSE(IsKnown(id));
    EXPECT_EQ(BytesOf(id), 0);
    EXPECT_FALSE(cluster_->files().Exists("/checkpoints/" + id));
    for (const char* table : {"records", "shown", "removals"}) {
      EXPECT_EQ(Count(absl::StrCat(table, " WHERE job = '", id, "'")), 0) << table;
    }
    EXPECT_EQ(Count("jobs WHERE id = '" + id + "'"), 0);
  }

  std::optional<absl::StatusOr<JobUsage>> answer_;
};

TEST_F(RemovalTest, AnEndedJobGoesWithAllThatItHasAndFreesItsName) {
  Begin(2);
  Ended("small");  // a name that begins as the other's
  Ended();
  const int64_t bytes = BytesOf(kJob), others = BytesOf("small");
  const absl::StatusOr<JobUsage> freed = Remove();
  ASSERT_TRUE(freed.ok()) << freed.status();
  EXPECT_EQ(freed->checkpoints, 2);
  EXPECT_EQ(freed->record_bytes, 5);
  EXPECT_GT(freed->export_bytes, 5);
  EXPECT_EQ(freed->checkpoint_bytes + freed->export_bytes + freed->record_bytes, bytes);
  ExpectGone();
  EXPECT_EQ(BytesOf("small"), others);
  EXPECT_THAT(Remove().status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("not known")));

  cluster_->RestartCoordinator();
  ExpectGone();
  EXPECT_THAT(cluster_->unknown_jobs, IsEmpty());
  EXPECT_TRUE(cluster_->Submit(kJob, SmallJob(2)).ok()) << "the name is free";
}

// A command to the former job and its late answers have another fence.
TEST_F(RemovalTest, ANameIsUsedAgainWhileStagesStillWorkForTheFormerJob) {
  JobSpec former = SmallJob(2);
  former.seed = 8;
  Begin(2).Start(former).UntilStep(4);
  ASSERT_TRUE(cluster_->Cancel(kJob).ok());
  const uint64_t generation = cluster_->View(kJob).generation;
  ASSERT_TRUE(Remove().ok());
  cluster_->Start(SmallJob(2)).UntilPhase(JobPhase::kSucceeded);
  EXPECT_GT(cluster_->View(kJob).generation, generation + 1);
  EXPECT_EQ(cluster_->View(kJob).weights_digest, Golden().outcome.digest);
  EXPECT_THAT(cluster_->violations, IsEmpty());
}

TEST_F(RemovalTest, AJobThatHasNotEndedOrIsInUseStays) {
  Begin(2);
  Ended("first");
  cluster_->Start(ResumesFrom("first"), "second");
  EXPECT_THAT(Remove("second").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("only ended jobs are removed; `stagecoach cancel second`")));
  EXPECT_THAT(Remove("first").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("by job second"), HasSubstr("`stagecoach cancel second`"))));
  cluster_->Digest("second");

  std::shared_ptr<const void> pin;
  cluster_->loop().PinCheckpoints(
      "first", [&](absl::StatusOr<std::shared_ptr<const void>> given) { pin = *std::move(given); });
  EXPECT_THAT(Remove("first").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("by an export")));
  EXPECT_TRUE(IsKnown("first"));
  pin.reset();
  EXPECT_TRUE(Remove("first").ok());
  ExpectGone("first");
}

// The process ends at every event between the request and the answer.
TEST_F(RemovalTest, ACrashLeavesTheJobWholeOrGone) {
  int whole = 0, gone = 0;
  for (int at = 0; at < 12; ++at) {
    SCOPED_TRACE(at);
    Begin(2);
    Ended();
    const int64_t bytes = BytesOf(kJob);
    answer_.reset();
    Ask();
    for (int i = 0; i < at; ++i) cluster_->Step();
    cluster_->RestartCoordinator();
    const bool known = IsKnown();
    EXPECT_FALSE(known && answer_.has_value());
    cluster_->Wait(1);
    EXPECT_EQ(IsKnown(), known) << "what was not decided is not decided later";
    if (known) {
      EXPECT_EQ(BytesOf(kJob), bytes);
      EXPECT_TRUE(Remove().ok()) << "the client asks again";
    }
    ExpectGone();
    ++(known ? whole : gone);
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(gone, 1);
}

// The file system dies in the middle of the files; the decision is on disk.
TEST_F(RemovalTest, FilesThatCannotBeRemovedAreTriedAgain) {
  for (const bool restarts : {false, true}) {
    Begin(2);
    Ended();
    Ask();
    cluster_->RunUntil([this] { return !IsKnown(); });
    cluster_->files().Inject({.call = 6, .from_then_on = true});
    EXPECT_TRUE(cluster_->RunUntil([this] { return answer_.has_value(); }));
    EXPECT_THAT(answer_->status(), StatusIs(absl::StatusCode::kUnavailable,
                                            HasSubstr("the coordinator tries again every minute")));
    EXPECT_GT(BytesOf(kJob) + Count("removals"), 0);
    cluster_->files().ClearFault();
    EXPECT_THAT(cluster_->Submit(kJob, SmallJob(2)).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is being removed")));
    EXPECT_THAT(cluster_->Submit("next", ResumesFrom(kJob)).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is being removed")));
    if (restarts) cluster_->RestartCoordinator();
    cluster_->Wait(restarts ? 1 : 70);
    ExpectGone();
    answer_.reset();
  }
}

TEST_F(RemovalTest, WithoutItsStateFolderNothingIsRemoved) {
  Begin(2);
  Ended();
  const int64_t bytes = BytesOf(kJob);
  cluster_->folder_error = absl::FailedPreconditionError("another coordinator");
  EXPECT_FALSE(Remove().ok());
  EXPECT_FALSE(RemoveCheckpoints({3}).ok());
  EXPECT_EQ(BytesOf(kJob), bytes);
}

TEST_F(RemovalTest, ARunningJobKeepsItsNewestCheckpointAndEndsAsItWouldHave) {
  JobSpec spec = SmallJob(2);
  Begin(2).Start(spec).UntilSaved(6);
  EXPECT_THAT(RemoveCheckpoints({6}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cancel that job first")));
  const absl::StatusOr<RemovedCheckpoints> removed = RemoveCheckpoints({3});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_GT(removed->bytes, 0);
  EXPECT_THAT(cluster_->Saved(),
              AllOf(Contains("step-000000000006"), Not(Contains("step-000000000003"))));
  cluster_->ReplaceStage(1);  // it goes back to what was left
  cluster_->ExpectGoldenEnd();
  EXPECT_THAT(RemoveCheckpoints({3}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("it has those of 6, 7")));
  EXPECT_TRUE(RemoveCheckpoints({6, 7}).ok()) << "it has ended";
}

// It has not looked for its checkpoint: there are no stages for it.
TEST_F(RemovalTest, AJobThatWaitsToGoOnFromTheNewestKeepsIt) {
  for (const bool restarts : {false, true}) {
    Begin(2);
    Ended("first");
    cluster_->KillStage(0);
    cluster_->Wait(10);
    cluster_->Start(ResumesFrom("first"), "second");
    if (restarts) cluster_->RestartCoordinator();
    EXPECT_FALSE(RemoveCheckpoints({7}, "first").ok());
    EXPECT_TRUE(RemoveCheckpoints({6}, "first").ok());
    cluster_->RestartStage(0);
    cluster_->Digest("second");
    EXPECT_TRUE(RemoveCheckpoints({7}, "first").ok());
  }
}

TEST_F(RemovalTest, WhoAsksWhenTheCoordinatorEndsIsAnswered) {
  Begin(2);
  Ended();
  Ask();
  std::optional<absl::Status> checkpoints;
  cluster_->loop().RemoveCheckpoints(
      kJob, {6}, false,
      [&](absl::StatusOr<RemovedCheckpoints> removed) { checkpoints = removed.status(); });
  cluster_->loop().Close();
  ASSERT_TRUE(answer_.has_value() && checkpoints.has_value());
  EXPECT_TRUE(absl::IsUnavailable(answer_->status()));
  EXPECT_TRUE(absl::IsUnavailable(*checkpoints));
}

}  // namespace
}  // namespace stagecoach
