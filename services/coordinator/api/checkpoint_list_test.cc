// Symptom: `checkpoints` of a running job told now and then of one that "cannot be used". Cause:
// retention removed the oldest one between the look at the folder and the reading of its files.
#include "services/coordinator/api/checkpoint_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

// Whoever opens a file of the folder `removed` finds that retention was quicker.
class RemovingFileSystem final : public FileSystem {
 public:
  explicit RemovingFileSystem(FileSystem* files) : files_(files) {}
  std::string removed;

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    if (!removed.empty() && absl::StartsWith(path, removed)) {
      RETURN_IF_ERROR(files_->Rename(removed, removed + ".trash"));
      removed.clear();
    }
    return files_->Open(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return files_->Create(path);
  }
  absl::Status MakeFolders(const std::string& path) override { return files_->MakeFolders(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return files_->List(folder);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return files_->Rename(from, to);
  }
  absl::Status SyncFolder(const std::string& folder) override { return files_->SyncFolder(folder); }
  absl::Status RemoveAll(const std::string& path) override { return files_->RemoveAll(path); }
  absl::Status Look(const std::string& path) override { return files_->Look(path); }
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override {
    return files_->FreeBytes(folder);
  }

 private:
  FileSystem* const files_;
};

class CheckpointListTest : public testing::Test {
 protected:
  CheckpointListTest() {
    for (const uint64_t step : {3, 6}) {
      const absl::StatusOr<CheckpointRef> ref = SaveToy(files_, store_, "job", 1, step);
      EXPECT_TRUE(ref.ok()) << ref.status();
      if (step == 3 && ref.ok()) oldest_ = ref->folder;
    }
  }

  FaultFileSystem memory_;
  RemovingFileSystem files_{&memory_};
  CheckpointStore store_{&files_, "/root"};
  std::string oldest_;
};

TEST_F(CheckpointListTest, WhatRetentionRemovesMeanwhileIsNotShownAsBroken) {
  for (const bool verify : {false, true}) {
    ASSERT_EQ(ListCheckpointsOf(store_, "job", "", verify).checkpoints_size(), 2);
    files_.removed = oldest_;
    const v1::ListCheckpointsResponse list = ListCheckpointsOf(store_, "job", "", verify);
    ASSERT_EQ(list.checkpoints_size(), 1);
    EXPECT_EQ(list.checkpoints(0).step(), 6u);
    EXPECT_EQ(list.checkpoints(0).error(), "");
    ASSERT_TRUE(files_.Rename(oldest_ + ".trash", oldest_).ok());
  }
}

TEST_F(CheckpointListTest, WhatIsThereAndDamagedIsShownAsBroken) {
  const std::string path = oldest_ + "/layer-0000-0001.safetensors";
  std::string bytes = memory_.Contents(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  memory_.SetContents(path, bytes);
  v1::ListCheckpointsResponse list = ListCheckpointsOf(store_, "job", "", true);
  ASSERT_EQ(list.checkpoints_size(), 2);
  EXPECT_THAT(list.checkpoints(1).error(), HasSubstr("/root/job/step-000000000003/layer-0000"));
  list = ListCheckpointsOf(store_, "job", "user/ann", true);
  ASSERT_EQ(list.checkpoints_size(), 2);
  EXPECT_THAT(list.checkpoints(1).error(), HasSubstr("CHECKPOINTS/job/step-000000000003/layer"));
}

// Symptom: `checkpoints verify` said nothing of a step whose manifest had been deleted.
TEST_F(CheckpointListTest, AFolderWithoutItsManifestIsShownAsBroken) {
  ASSERT_TRUE(memory_.RemoveAll(oldest_ + "/MANIFEST.json").ok());
  for (const bool verify : {false, true}) {
    const v1::ListCheckpointsResponse list = ListCheckpointsOf(store_, "job", "", verify);
    ASSERT_EQ(list.checkpoints_size(), 2);
    EXPECT_EQ(list.checkpoints(1).step(), 3u);
    EXPECT_THAT(list.checkpoints(1).error(), HasSubstr("MANIFEST.json"));
  }
}

}  // namespace
}  // namespace stagecoach
