// Checkpoints in a bucket: CheckpointStore over S3Files, with a server that fails on command, two
// coordinators at once, and stops at every request.
#include "services/coordinator/store/s3_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "base/testing/status_is.h"
#include "checkpoint/names.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "services/common/s3/fake_s3_testing.h"
#include "services/coordinator/store/local_store_files.h"

namespace stagecoach {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using S3Fault = FakeS3::Fault;

// One coordinator on the bucket.
struct Coordinator {
  explicit Coordinator(const FakeS3& server, double give_up_seconds = 30)
      : client({*ParseS3Location("s3://bucket/p", server.endpoint(), ""), give_up_seconds,
                /*first_pause_seconds=*/0.0005},
               &transfer, &credentials) {}

  HttpTransfer transfer;
  S3CredentialSource credentials{&transfer, SystemClock::Get(), [](const std::string& name) {
                                   if (name == "AWS_ACCESS_KEY_ID") return FakeS3::kAccessKey;
                                   return name == "AWS_SECRET_ACCESS_KEY" ? "s" : "";
                                 }};
  S3Client client;
  S3Files files{PosixFileSystem(), &client};
  CheckpointStore store{&files, LocalStoreFiles::Root()};
};

class S3FilesTest : public ::testing::Test {
 protected:
  S3FilesTest() {
    server_ = std::make_unique<FakeS3>([this](const FakeS3::Request& request) {
      return fault_ ? fault_(request) : S3Fault::kNone;
    });
    one_ = std::make_unique<Coordinator>(*server_);
  }
  std::vector<uint64_t> Steps(const std::string& job = "job") {
    std::vector<uint64_t> steps;
    for (const CheckpointRef& ref : one_->store.List(job)) steps.push_back(ref.step);
    return steps;
  }
  void Save(uint64_t step) {
    const absl::StatusOr<CheckpointRef> saved = SaveToy(one_->files, one_->store, "job", 1, step);
    ASSERT_TRUE(saved.ok()) << saved.status();
  }
  std::vector<std::string> Names(const std::string& job = "job") {
    return one_->files.List(absl::StrCat(LocalStoreFiles::Root(), "/", job))
        .value_or(std::vector<std::string>());
  }

  std::function<S3Fault(const FakeS3::Request&)> fault_;  // set while no request is under way
  std::unique_ptr<FakeS3> server_;
  std::unique_ptr<Coordinator> one_;
};

// The simulator found a job that tried its last commit for ever.
TEST_F(S3FilesTest, ADamagedAliasIsSetAsideAndItsStepCommittedAnew) {
  Save(2);
  Save(4);
  server_->Set("p/checkpoints/job/step-000000000004", "stagecoach-alias-1\n.tmp-1");
  Save(4);
  EXPECT_EQ(LoadToy(one_->files, one_->store, "job", nullptr), 4u);
  EXPECT_THAT(Names(), Contains(".broken-step-000000000004"));
  EXPECT_TRUE(one_->store.RemoveJob("job").ok());
  EXPECT_THAT(server_->objects(), IsEmpty());
}

TEST_F(S3FilesTest, KeepsCommitsLoadsAndRemovesAsADiskDoes) {
  EXPECT_FALSE(one_->store.HasFolder("job"));
  for (const uint64_t step : {2, 30, 4}) Save(step);
  EXPECT_THAT(Names(),
              ElementsAre("LATEST", "step-000000000002", "step-000000000004", "step-000000000030"));
  EXPECT_THAT(one_->store.Jobs(), ElementsAre("job"));
  EXPECT_EQ(LoadToy(one_->files, one_->store, "job", nullptr), 30u);
  EXPECT_EQ(server_->objects().at("p/checkpoints/job/LATEST"), "step-000000000004\n");
  Coordinator other(*server_);
  EXPECT_EQ(LoadToy(other.files, other.store, "job", nullptr), 30u);
  EXPECT_TRUE(one_->store.Retain("job", 2, {}).ok());
  EXPECT_THAT(Steps(), ElementsAre(30, 4));
  const absl::StatusOr<RemovedCheckpoints> removed = one_->store.Remove("job", {.steps = {30}});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_GT(removed->bytes, 0);
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step-000000000004"));
  for (const auto& [key, content] : server_->objects()) {
    EXPECT_FALSE(absl::StrContains(key, "-30-")) << key;
  }
  EXPECT_TRUE(one_->store.RemoveJob("job").ok());
  EXPECT_THAT(server_->objects(), IsEmpty());
}

TEST_F(S3FilesTest, ABrokenCheckpointIsSetAsideAndTheOneBeforeTaken) {
  Save(1);
  Save(2);
  for (const auto& [key, content] : server_->objects()) {
    if (absl::StrContains(key, ".tmp-1-2-") && absl::StrContains(key, "layer-0000")) {
      server_->Set(key, "damaged");
    }
  }
  std::vector<std::string> quarantined;
  EXPECT_EQ(LoadToy(one_->files, one_->store, "job", &quarantined), 1u);
  EXPECT_EQ(quarantined.size(), 1u);
  EXPECT_THAT(Names(), ElementsAre(".broken-step-000000000002", "LATEST", "step-000000000001"));
  Save(2);
  EXPECT_EQ(LoadToy(one_->files, one_->store, "job", nullptr), 2u);
  one_->store.SweepTemporary("job", 9);
  EXPECT_EQ(LoadToy(one_->files, one_->store, "job", nullptr), 2u) << "its folder is no garbage";
}

TEST_F(S3FilesTest, FoldersThatWereBegunAreSwept) {
  Save(1);
  const std::string temporary = *one_->store.Begin("job", 1, 2, 0);
  ASSERT_TRUE(WriteToyShard(one_->files, temporary, ToyModel(2), 0, 2).ok());
  ASSERT_TRUE(one_->client.BeginParts("p/checkpoints/job/" + NameOf(temporary) + "/x").ok());
  one_->store.SweepTemporary("job", 1);
  EXPECT_THAT(Names(), Contains(NameOf(temporary))) << "of this term";
  one_->store.SweepTemporary("job", 2);
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step-000000000001"));
  EXPECT_EQ(server_->uploads(), 0u);
}

// A later coordinator sweeps the folder between the last file and the commit.
TEST_F(S3FilesTest, ASweptFolderIsNotCommitted) {
  const std::string temporary = *one_->store.Begin("job", 1, 2, 0);
  Manifest manifest = ToyManifest("job", 1, 2);
  manifest.shards.push_back(*WriteToyShard(one_->files, temporary, ToyModel(2), 0, 2));
  Coordinator later(*server_);
  std::atomic<bool> swept{false};
  fault_ = [&](const FakeS3::Request& request) {
    const bool commits = request.method == "PUT" && request.key.ends_with("step-000000000002");
    if (commits && !swept.exchange(true)) later.store.SweepTemporary("job", 2);
    return S3Fault::kNone;
  };
  EXPECT_TRUE(absl::IsAborted(one_->store.Commit(temporary, manifest, ToyExpected()).status()));
  EXPECT_TRUE(swept);
  EXPECT_THAT(Steps(), IsEmpty());
}

// Symptom: a simulated coordinator swept a folder while the one before committed it: the manifest was
// written behind its removal and in front of the listing, and a committed checkpoint lost its shards.
TEST_F(S3FilesTest, ACommitAmidASweepIsWholeOrGone) {
  for (const bool sweeps_first : {true, false}) {
    bool nested = true;
    for (int at = 1; nested; ++at) {  // the other one's work amid each request
      for (const auto& [key, content] : server_->objects()) server_->Erase(key);
      Coordinator later(*server_);
      const std::string temporary = *one_->store.Begin("job", 1, 2, 0);
      Manifest manifest = ToyManifest("job", 1, 2);
      manifest.shards.push_back(*WriteToyShard(one_->files, temporary, ToyModel(2), 0, 2));
      absl::Status committed;
      const auto commit = [&] {
        committed = one_->store.Commit(temporary, manifest, ToyExpected()).status();
      };
      const auto sweep = [&] { later.store.SweepTemporary("job", 2); };
      int asked = 0;
      nested = false;
      fault_ = [&](const FakeS3::Request&) {
        if (nested || ++asked != at) return S3Fault::kNone;
        nested = true;
        sweeps_first ? commit() : sweep();
        return S3Fault::kNone;
      };
      sweeps_first ? sweep() : commit();
      fault_ = nullptr;
      const std::vector<CheckpointRef> there = later.store.List("job");
      const bool is_committed = committed.ok() && (nested || !sweeps_first);
      if (is_committed) EXPECT_EQ(there.size(), 1u) << sweeps_first << at;
      for (const CheckpointRef& ref : there) {
        EXPECT_TRUE(later.store.Verify(ref, /*tensors=*/true).ok()) << sweeps_first << at;
      }
    }
  }
}

TEST_F(S3FilesTest, AMissingBucketIsNoEmptyOne) {
  Coordinator lost(*server_);
  S3Client elsewhere({*ParseS3Location("s3://other", server_->endpoint(), "")}, &lost.transfer,
                     &lost.credentials);
  S3Files files(PosixFileSystem(), &elsewhere);
  CheckpointStore store(&files, LocalStoreFiles::Root());
  EXPECT_TRUE(absl::IsFailedPrecondition(store.FindLoadable("job", -1, nullptr).status()));
  EXPECT_THAT(files.Probe(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--store=s3://other: ")));
}

TEST_F(S3FilesTest, TheProbeRefusesAServerThatIgnoresTheCondition) {
  EXPECT_TRUE(one_->files.Probe().ok());
  server_->IgnoreConditions();
  EXPECT_THAT(one_->files.Probe(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("If-None-Match")));
  EXPECT_THAT(server_->objects(), IsEmpty());
}

TEST_F(S3FilesTest, PathsThatLeadElsewhereAreRefused) {
  for (const std::string path : {"store:/checkpoints/job/../x", "store:/checkpoints//x",
                                 "store:/other/job", "store:/checkpoints/a/b/c/d"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(one_->files.Open(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(one_->files.RemoveAll(path))) << path;
  }
  EXPECT_FALSE(one_->files.RemoveAll("store:/checkpoints").ok());
  EXPECT_FALSE(one_->files.Create("store:/checkpoints/job/step-000000000001/x").ok());
  EXPECT_TRUE(absl::IsUnimplemented(one_->files.Rename("store:/checkpoints/a/step-000000000001",
                                                       "store:/checkpoints/b/step-000000000001")));
}

// Two coordinators save, load and remove under faults of every kind. What one of them was told to be
// committed can be loaded until it is removed; no step is half.
TEST_F(S3FilesTest, TwoWritersLoseNothingUnderFaults) {
  const int runs = kSanitized ? 20 : 200;
  for (int seed = 1; seed <= runs; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mutex mutex;
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    fault_ = [&](const FakeS3::Request&) {
      std::lock_guard<std::mutex> lock(mutex);
      return random() % 8 == 0 ? static_cast<S3Fault>(1 + random() % 6) : S3Fault::kNone;
    };
    const std::string job = absl::StrCat("job-", seed);
    std::atomic<int> committed{0};
    std::vector<std::thread> writers;
    for (const uint64_t term : {1, 2}) {
      writers.emplace_back([&, term] {
        Coordinator coordinator(*server_);
        for (const uint64_t step : {1, 2}) {
          const absl::StatusOr<CheckpointRef> saved =
              SaveToy(coordinator.files, coordinator.store, job, term, step, true);
          committed += saved.ok();
          EXPECT_TRUE(saved.ok() || absl::IsAlreadyExists(saved.status())) << saved.status();
          EXPECT_TRUE(
              coordinator.store.FindLoadable(job, static_cast<int64_t>(step), nullptr).ok());
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    EXPECT_GE(committed, 2);
    EXPECT_EQ(LoadToy(one_->files, one_->store, job, nullptr), 2u);
    EXPECT_TRUE(one_->store.Remove(job, {.steps = {2}}).ok());
    EXPECT_EQ(LoadToy(one_->files, one_->store, job, nullptr), 1u);
    one_->store.SweepTemporary(job, 3);
    EXPECT_EQ(LoadToy(one_->files, one_->store, job, nullptr), 1u);
    EXPECT_THAT(Names(job), ElementsAre("LATEST", "step-000000000001"));
    EXPECT_TRUE(one_->store.RemoveJob(job).ok());
    EXPECT_THAT(server_->objects(), IsEmpty());
  }
}

// From some request on nothing gets through, as after kill -9; then the next coordinator comes.
TEST_F(S3FilesTest, WhereverACoordinatorStopsEachStepIsWholeOrGone) {
  int whole = 0, gone = 0;
  for (int stop = 1; stop < 60; stop += kSanitized ? 5 : 1) {
    SCOPED_TRACE(absl::StrCat("request ", stop));
    fault_ = nullptr;
    const std::string job = absl::StrCat("job-", stop);
    ASSERT_TRUE(SaveToy(one_->files, one_->store, job, 1, 1, true).ok());
    std::atomic<int> left{stop};
    fault_ = [&left](const FakeS3::Request&) {
      const int number = left--;
      return number > 1 ? S3Fault::kNone : number == 1 ? S3Fault::kCutAfter : S3Fault::kCutBefore;
    };
    {
      Coordinator dying(*server_, /*give_up_seconds=*/0);
      SaveToy(dying.files, dying.store, job, 1, 2, true).status().IgnoreError();
      dying.store.Remove(job, {.steps = {2}}).status().IgnoreError();
    }
    fault_ = nullptr;
    Coordinator next(*server_);
    next.store.SweepTemporary(job, 2);
    for (const CheckpointRef& ref : next.store.ListWithDamaged(job)) {
      EXPECT_TRUE(next.store.Verify(ref, true).ok()) << ref.folder;
    }
    const uint64_t newest = LoadToy(next.files, next.store, job, nullptr);
    ++(newest == 2 ? whole : gone);
    EXPECT_THAT(Names(job), ::testing::Not(Contains(::testing::StartsWith("."))));
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(gone, 0);
}

}  // namespace
}  // namespace stagecoach
