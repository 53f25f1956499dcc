#include "checkpoint/store/store.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/names.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class StoreTest : public testing::Test {
 protected:
  void Save(uint64_t step) {
    absl::StatusOr<CheckpointRef> ref = SaveToy(files_, store_, "job", 1, step);
    ASSERT_TRUE(ref.ok()) << ref.status();
  }
  std::vector<uint64_t> Steps() {
    std::vector<uint64_t> steps;
    for (const CheckpointRef& ref : store_.List("job")) steps.push_back(ref.step);
    return steps;
  }
  std::string Folder(uint64_t step) { return "/root/job/" + FormatStepFolder(step); }
  void Damage(uint64_t step) {
    const std::string path = Folder(step) + "/layer-0000-0001.safetensors";
    std::string bytes = files_.Contents(path);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    files_.SetContents(path, bytes);
  }

  FaultFileSystem files_;
  CheckpointStore store_{&files_, "/root"};
  std::vector<std::string> quarantined_;
};

TEST_F(StoreTest, LoadsTheNewestOfWhatWasCommitted) {
  Save(50);
  Save(9);
  Save(100);
  EXPECT_THAT(Steps(), ElementsAre(100, 50, 9));
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 100u);
  EXPECT_EQ(files_.Contents("/root/job/LATEST"), "step-000000000100\n");
  EXPECT_THAT(*files_.List("/root/job"), SizeIs(4)) << "three checkpoints, LATEST, no leftovers";
}

TEST_F(StoreTest, LoadsTheNamedStepOrNothing) {
  Save(1);
  Save(2);
  EXPECT_EQ(store_.FindLoadable("job", 1, nullptr)->step, 1u);
  EXPECT_TRUE(absl::IsNotFound(store_.FindLoadable("job", 3, nullptr).status()));
  Damage(2);
  const absl::Status status = store_.FindLoadable("job", 2, &quarantined_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(quarantined_, IsEmpty());
  EXPECT_THAT(Steps(), ElementsAre(2, 1)) << "an explicit step is never set aside";
}

// A file can be what its stage wrote, and a tensor in it not what the manifest says: a load would
// find it when it reads that one.
TEST_F(StoreTest, ComparesTensorsWhereItIsAsked) {
  const std::string temporary = *store_.Begin("job", 1, 5, 0);
  Manifest manifest = ToyManifest("job", 1, 5);
  manifest.shards.push_back(*WriteToyShard(files_, temporary, ToyModel(5), 0, 2));
  ShardTensor& tensor = manifest.shards[0].tensors[1];
  tensor.sha256 = Sha256Hex("something else");
  const absl::StatusOr<CheckpointRef> ref = store_.Commit(temporary, manifest, ToyExpected());
  ASSERT_TRUE(ref.ok()) << ref.status();
  EXPECT_TRUE(store_.Verify(*ref).ok());
  EXPECT_THAT(store_.Verify(*ref, /*tensors=*/true).status(),
              StatusIs(absl::StatusCode::kDataLoss, testing::HasSubstr(tensor.entry.name)));
  Save(6);
  EXPECT_TRUE(store_.Verify(store_.List("job")[0], /*tensors=*/true).ok());
}

TEST_F(StoreTest, SaysThatAJobHasNoCheckpoint) {
  EXPECT_TRUE(absl::IsNotFound(store_.FindLoadable("job", -1, nullptr).status()));
  EXPECT_THAT(store_.List("job"), IsEmpty());
  store_.SweepTemporary("job", 9);
  EXPECT_TRUE(store_.Retain("job", 1, {}).ok());
}

TEST_F(StoreTest, SetsABrokenCheckpointAsideAndTakesTheOneBefore) {
  Save(1);
  Save(2);
  Damage(2);
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 1u);
  EXPECT_THAT(quarantined_, ElementsAre(StartsWith("step-000000000002: ")));
  EXPECT_TRUE(files_.Exists("/root/job/.broken-step-000000000002/MANIFEST.json"));
  // The same again: the name is taken already.
  Save(2);
  Damage(2);
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 1u);
  EXPECT_TRUE(files_.Exists("/root/job/.broken-step-000000000002.1"));
}

TEST_F(StoreTest, TrustsNoFolderWithoutAManifest) {
  Save(1);
  ASSERT_TRUE(files_.MakeFolders(Folder(7)).ok());
  EXPECT_THAT(Steps(), ElementsAre(1));
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 1u);
  EXPECT_THAT(quarantined_, SizeIs(1));
}

TEST_F(StoreTest, TrustsNoFolderUnderAnotherStepsName) {
  Save(1);
  Save(2);
  ASSERT_TRUE(files_.Rename(Folder(2), Folder(3)).ok());
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 1u);
  EXPECT_THAT(quarantined_, SizeIs(1));
}

TEST_F(StoreTest, DoesNotPassOverACheckpointThatItMerelyCannotRead) {
  Save(1);
  Save(2);
  // List, then the manifest of step 2.
  files_.Inject({.call = 2, .code = absl::StatusCode::kPermissionDenied});
  const absl::Status status = store_.FindLoadable("job", -1, &quarantined_).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(quarantined_, IsEmpty());
}

// Symptom: while the storage was away for a moment a recovery found "no checkpoint", and the job
// started over.
TEST_F(StoreTest, DoesNotTakeAFolderThatItCannotListForAnEmptyOne) {
  Save(1);
  for (const auto code : {absl::StatusCode::kUnavailable, absl::StatusCode::kDataLoss,
                          absl::StatusCode::kPermissionDenied}) {
    files_.Inject({.call = 1, .code = code});
    EXPECT_EQ(store_.FindLoadable("job", -1, &quarantined_).status().code(), code);
  }
  EXPECT_TRUE(store_.FindLoadable("job", -1, &quarantined_).ok());
}

TEST_F(StoreTest, TakesACheckpointThatCannotBeSetAsideForWhatItIs) {
  Save(1);
  Save(2);
  Damage(2);
  const int64_t before = files_.calls();
  EXPECT_TRUE(absl::IsDataLoss(store_.Verify(store_.List("job")[0]).status()));
  const int64_t verify_calls = files_.calls() - before - 1;  // without List
  files_.Inject({.call = 1 + verify_calls + 1, .code = absl::StatusCode::kPermissionDenied});
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 1u);
  EXPECT_THAT(quarantined_, SizeIs(1));
  EXPECT_TRUE(files_.Exists(Folder(2))) << "the rename was refused";
}

TEST_F(StoreTest, RefusesTheCheckpointOfAnotherJob) {
  Save(1);
  ASSERT_TRUE(files_.Rename("/root/job", "/root/other").ok());
  EXPECT_THAT(
      store_.FindLoadable("other", -1, &quarantined_).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("of job job, not of other")));
}

TEST_F(StoreTest, KeepsAnIntactCheckpointOfTheSameStep) {
  Save(5);
  const std::string manifest = files_.Contents(Folder(5) + "/MANIFEST.json");
  absl::StatusOr<CheckpointRef> again = SaveToy(files_, store_, "job", 2, 5);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->folder, Folder(5));
  EXPECT_EQ(files_.Contents(Folder(5) + "/MANIFEST.json"), manifest) << "term 1 wrote it";
  EXPECT_THAT(*files_.List("/root/job"), ElementsAre("LATEST", "step-000000000005"));
}

TEST_F(StoreTest, ReplacesABrokenCheckpointOfTheSameStep) {
  Save(5);
  Damage(5);
  Save(5);
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 5u);
  EXPECT_THAT(quarantined_, IsEmpty());
  EXPECT_TRUE(files_.Exists("/root/job/.broken-step-000000000005"));
}

// What the commit refuses, each with the fault made by hand.
class CommitTest : public StoreTest {
 protected:
  void SetUp() override {
    temporary_ = *store_.Begin("job", 4, 10, 0);
    for (int layer = 0; layer < 2; ++layer) {
      manifest_.shards.push_back(*WriteToyShard(files_, temporary_, model_, layer, layer + 1));
    }
  }
  absl::Status Commit() {
    const absl::Status status = store_.Commit(temporary_, manifest_, expected_).status();
    if (!status.ok()) {
      EXPECT_THAT(store_.List("job"), IsEmpty());
      EXPECT_THAT(std::string(status.message()), HasSubstr("job job at step 10"));
    }
    return status;
  }
  void ExpectRefused(const std::string& why) {
    EXPECT_THAT(Commit(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why)));
  }

  const std::vector<ToyTensor> model_ = ToyModel(10);
  std::vector<ExpectedTensor> expected_ = ToyExpected();
  Manifest manifest_ = ToyManifest("job", 4, 10);
  std::string temporary_;
};

TEST_F(CommitTest, TakesExactlyTheModel) { EXPECT_TRUE(Commit().ok()); }

TEST_F(CommitTest, TakesARepeatedAttempt) {
  files_.Inject({.call = 12});
  const absl::Status first = Commit();
  files_.ClearFault();
  EXPECT_FALSE(first.ok());
  EXPECT_TRUE(Commit().ok());
}

TEST_F(CommitTest, RefusesAMissingShard) {
  manifest_.shards.pop_back();
  ExpectRefused("no shard holds tensor model/0001/bias (2 are missing)");
}

TEST_F(CommitTest, RefusesATensorInTwoShards) {
  manifest_.shards[1].tensors.push_back(manifest_.shards[0].tensors[0]);
  ExpectRefused("in two places");
}

TEST_F(CommitTest, RefusesAnUnknownTensor) {
  expected_.pop_back();
  ExpectRefused("opt/m/0001/bias is not part of the model");
}

TEST_F(CommitTest, RefusesAnotherShapeOrType) {
  expected_[0].shape = Shape({2, 3});
  ExpectRefused("is F32 [3, 2], the model has F32 [2, 3]");
  expected_[0].shape = Shape({3, 2});
  expected_[0].dtype = DType::kI32;
  ExpectRefused("is F32 [3, 2], the model has I32 [3, 2]");
}

TEST_F(CommitTest, RefusesTheSameFileTwice) {
  manifest_.shards[1] = manifest_.shards[0];
  ExpectRefused("given twice");
}

TEST_F(CommitTest, RefusesATemporaryFolderOfAnotherTermStepOrJob) {
  manifest_.term = 5;
  ExpectRefused("was not begun for");
  manifest_.term = 4;
  temporary_ = "/root/other/" + NameOf(temporary_);
  ExpectRefused("was not begun for");
}

TEST_F(CommitTest, RefusesAShardThatIsNotAsItsStageReported) {
  manifest_.shards[0].bytes += 1;
  EXPECT_TRUE(absl::IsDataLoss(Commit()));
  manifest_.shards[0].bytes -= 1;
  manifest_.shards[0].tensors[0].entry.begin += 1;
  EXPECT_TRUE(absl::IsDataLoss(Commit()));
}

TEST_F(CommitTest, RefusesAShardThatIsGone) {
  ASSERT_TRUE(files_.RemoveAll(temporary_ + "/layer-0000-0001.safetensors").ok());
  EXPECT_TRUE(absl::IsNotFound(Commit()));
}

TEST_F(CommitTest, RefusesShardNamesThatLeaveTheFolder) {
  for (const std::string name : {"../x", "/etc/passwd", "..", ".", "a/b", "", "MANIFEST.json"}) {
    manifest_.shards[0].file = name;
    EXPECT_FALSE(Commit().ok()) << name;
  }
}

TEST_F(CommitTest, RefusesTheStepOfAnotherModel) {
  ASSERT_TRUE(Commit().ok());
  temporary_ = *store_.Begin("job", 4, 10, 0);
  for (int layer = 0; layer < 2; ++layer) {
    ASSERT_TRUE(WriteToyShard(files_, temporary_, model_, layer, layer + 1).ok());
  }
  manifest_.model_sha256 = Sha256Hex("another");
  EXPECT_THAT(store_.Commit(temporary_, manifest_, expected_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another model")));
}

TEST_F(StoreTest, MakesNoPathFromABadJobName) {
  const int64_t calls = files_.calls();
  for (const std::string& name :
       {std::string(""), std::string(".."), std::string("a/b"), std::string("/proc/self"),
        std::string("A"), std::string("a_b"), std::string("\xc3\xa4"), std::string("a\0b", 3),
        std::string(64, 'a'), std::string("a.b"), std::string("a b")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store_.Begin(name, 1, 1, 0).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(store_.FindLoadable(name, -1, nullptr).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_.FindLoadable(name, 1, nullptr).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_.Retain(name, 1, {})));
    EXPECT_THAT(store_.List(name), IsEmpty());
    store_.SweepTemporary(name, 9);
  }
  EXPECT_EQ(files_.calls(), calls);
  EXPECT_TRUE(store_.Begin(std::string(63, 'a'), 1, 1, 0).ok());
}

TEST_F(StoreTest, BeginsOnlyWithFivePercentToSpare) {
  ASSERT_TRUE(store_.Begin("job", 1, 1, 0).ok());
  files_.SetCapacity(1049);
  const absl::Status status = store_.Begin("job", 1, 1, 1000).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("needs 1000 bytes plus 5 %")));
  files_.SetCapacity(1050);
  EXPECT_TRUE(store_.Begin("job", 1, 1, 1000).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store_.Begin("job", 1, 1, INT64_MAX).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.Begin("job", 1, 1, -1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.Begin("job", 1, 1'000'000'000'000, 1).status()));
}

TEST_F(StoreTest, AbandonsOnlyWhatWasBegun) {
  Save(1);
  const std::string temporary = *store_.Begin("job", 1, 2, 0);
  store_.Abandon(Folder(1));
  store_.Abandon("/root/job");
  store_.Abandon("/elsewhere/job/" + NameOf(temporary));
  EXPECT_THAT(Steps(), ElementsAre(1));
  store_.Abandon(temporary);
  EXPECT_FALSE(files_.Exists(temporary));
}

TEST_F(StoreTest, RemovesOnlyEmptyFoldersOfJobs) {
  Save(1);
  store_.RemoveIfEmpty("job");
  EXPECT_THAT(Steps(), ElementsAre(1));
  store_.Abandon(*store_.Begin("writes", 1, 0, 0));
  ASSERT_TRUE(store_.HasFolder("writes"));
  store_.RemoveIfEmpty("writes");
  EXPECT_FALSE(store_.HasFolder("writes"));
  store_.RemoveIfEmpty("none");
}

TEST_F(StoreTest, SweepsTemporaryFoldersOfEarlierTermsOnly) {
  Save(1);
  const std::string old_folder = *store_.Begin("job", 3, 2, 0);
  const std::string own_folder = *store_.Begin("job", 4, 2, 0);
  ASSERT_TRUE(files_.MakeFolders("/root/job/.tmp-notes").ok());
  ASSERT_TRUE(files_.MakeFolders("/root/job/.trash-step-000000000001-x").ok());
  ASSERT_TRUE(files_.MakeFolders("/root/job/.broken-step-000000000001").ok());
  store_.SweepTemporary("job", 4);
  EXPECT_THAT(*files_.List("/root/job"),
              ElementsAre(".broken-step-000000000001", NameOf(own_folder), ".tmp-notes", "LATEST",
                          "step-000000000001"));
  EXPECT_FALSE(files_.Exists(old_folder));
}

TEST_F(StoreTest, RetainsTheNewestAndThePinned) {
  for (uint64_t step = 1; step <= 6; ++step) Save(step);
  const std::vector<uint64_t> pinned = {2};
  EXPECT_TRUE(store_.Retain("job", 2, pinned).ok());
  EXPECT_THAT(Steps(), ElementsAre(6, 5, 2));
  EXPECT_TRUE(store_.Retain("job", 0, {}).ok());
  EXPECT_THAT(Steps(), ElementsAre(6)) << "at least one stays";
  EXPECT_THAT(*files_.List("/root/job"), ElementsAre("LATEST", "step-000000000006"));
}

TEST_F(StoreTest, RetainsAnIntactOneWhenTheNewerOnesAreBroken) {
  for (uint64_t step = 1; step <= 4; ++step) Save(step);
  Damage(4);
  Damage(3);
  EXPECT_TRUE(store_.Retain("job", 1, {}).ok());
  EXPECT_THAT(Steps(), ElementsAre(4, 3, 2)) << "2 is the newest intact one";
  EXPECT_EQ(LoadToy(files_, store_, "job", &quarantined_), 2u);
}

TEST(CheckpointStoreOnDisk, CommitsVerifiesAndRetains) {
  const TemporaryFolder root;
  CheckpointStore store(PosixFileSystem(), root.File("checkpoints"));
  for (uint64_t step = 1; step <= 3; ++step) {
    absl::StatusOr<CheckpointRef> ref = SaveToy(*PosixFileSystem(), store, "job", 1, step);
    ASSERT_TRUE(ref.ok()) << ref.status();
    EXPECT_TRUE(store.Verify(*ref).ok());
  }
  EXPECT_TRUE(store.Retain("job", 2, {}).ok());
  EXPECT_THAT(store.List("job"), SizeIs(2));
  std::vector<std::string> quarantined;
  EXPECT_EQ(LoadToy(*PosixFileSystem(), store, "job", &quarantined), 3u);
}

// Whoever may write one folder of the volume could have a job read another one.
TEST(CheckpointStoreOnDisk, FollowsNoLinkInThePlaceOfACheckpoint) {
  const TemporaryFolder root;
  CheckpointStore store(PosixFileSystem(), root.File("checkpoints"));
  for (uint64_t step = 1; step <= 2; ++step) {
    ASSERT_TRUE(SaveToy(*PosixFileSystem(), store, "job", 1, step).ok());
  }
  const std::string folder = root.File("checkpoints/job/") + FormatStepFolder(2);
  std::filesystem::rename(folder, root.File("elsewhere"));
  std::filesystem::create_symlink(root.File("elsewhere"), folder);
  EXPECT_THAT(store.FindLoadable("job", 2, nullptr).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is a link")));
  EXPECT_FALSE(store.ReadManifest({"job", 2, folder}).ok()) << "nor by who only looks";
  std::vector<std::string> quarantined;
  EXPECT_EQ(store.FindLoadable("job", -1, &quarantined)->step, 1u);
  EXPECT_THAT(quarantined, ElementsAre(HasSubstr("is a link")));
  EXPECT_TRUE(std::filesystem::exists(root.File("elsewhere/MANIFEST.json")))
      << "what it led to stays";
}

// Checkpoints of format version 1 load for ever, and are written with the same bytes still.
TEST(CheckpointStoreOnDisk, ReadsAndWritesTheGoldenCheckpoint) {
  const std::string golden = absl::StrCat(STAGECOACH_SOURCE_DIR, "/checkpoint/testdata/version-1");
  CheckpointStore store(PosixFileSystem(), golden);
  if (std::getenv("STAGECOACH_REWRITE") != nullptr) {
    ASSERT_TRUE(PosixFileSystem()->RemoveAll(golden).ok());
    ASSERT_TRUE(SaveToy(*PosixFileSystem(), store, "golden", 1, 7).ok());
  }
  std::vector<std::string> quarantined;
  ASSERT_EQ(LoadToy(*PosixFileSystem(), store, "golden", &quarantined), 7u);

  FaultFileSystem files;
  CheckpointStore now(&files, "/root");
  ASSERT_TRUE(SaveToy(files, now, "golden", 1, 7).ok());
  for (const char* name :
       {"MANIFEST.json", "layer-0000-0001.safetensors", "layer-0001-0002.safetensors"}) {
    const std::string path = absl::StrCat("/golden/step-000000000007/", name);
    std::unique_ptr<ReadableFile> file = *PosixFileSystem()->Open(golden + path);
    std::string bytes(static_cast<size_t>(file->size()), ' ');
    ASSERT_TRUE(file->Read(0, std::as_writable_bytes(std::span(bytes))).ok());
    EXPECT_EQ(files.Contents("/root" + path), bytes) << name;
  }
}

}  // namespace
}  // namespace stagecoach
