// Loads that read copies on the stage's own disk: the values are always those of the checkpoint.
#include <random>

#include "checkpoint/local/keeping_files.h"
#include "checkpoint/local/local_shards.h"
#include "checkpoint/testing/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/runtime/shard_tensors.h"
#include "stage/testing/manifest_file.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Survivors = FaultFileSystem::Survivors;

constexpr char kBegun[] = "/root/a/.tmp-1-1-nonce";
constexpr char kCommitted[] = "/root/a/step-000000000001";
constexpr char kCopies[] = "/cache/checkpoints/a/step-000000000001";

// Two stages that wrote a checkpoint, the first one with copies, and readers of all of it.
class ShardTensorsLocalTest : public testing::Test {
 protected:
  void SetUp() override {
    CHECK_OK(writer_.TrainStep());
    CHECK_OK(disk_.MakeFolders("/cache"));
    CHECK_OK(disk_.SyncFolder("/"));
    WriteCheckpoint();
  }

  void WriteCheckpoint() {
    CHECK_OK(store_files_.RemoveAll("/root"));
    CHECK_OK(store_files_.MakeFolders(kBegun));
    KeepingFiles keeping(&store_files_, &local_);
    FileSystem* const files[] = {&keeping, &store_files_};
    Manifest manifest{.job = "a", .state = {.step = 1}};
    for (int k = 0; k < 2; ++k) {
      auto shard = WriteTensors(*files[k], kBegun, writer_.cells(k), writer_.optimizer(k),
                                writer_.backend(k));
      CHECK_OK(shard.status());
      manifest.shards.push_back(*std::move(shard));
    }
    WriteManifestFile(store_files_, kBegun, manifest);
    CHECK_OK(store_files_.Rename(kBegun, kCommitted));
    shard_ = manifest.shards[0];
    copy_ = std::string(kCopies) + "/" + shard_.sha256;
  }

  // Loads stage k into a new cell. Answers how many bytes came from where.
  CheckpointFiles Load(int k) {
    PipelineHarness reader({.stages = 2});
    CheckpointFiles from{.files = &store_files_, .folder = kCommitted, .local = &local_};
    const auto tensors = TrainingTensors(reader.cells(k), reader.optimizer(k));
    const absl::Status loaded = LoadTensors(&from, 1, tensors, reader.backend(k));
    EXPECT_TRUE(loaded.ok()) << loaded;
    const auto expected = TrainingTensors(writer_.cells(k), writer_.optimizer(k));
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(BytesOf(tensors[i], reader.backend(k)), BytesOf(expected[i], writer_.backend(k)))
          << tensors[i].name;
    }
    return from;
  }

  static std::vector<std::byte> BytesOf(const NamedTensor& named, Backend& backend) {
    std::vector<std::byte> bytes(static_cast<size_t>(named.tensor.bytes()));
    backend.CopyToHost(named.tensor, bytes);
    CHECK_OK(backend.Synchronize());
    return bytes;
  }

  FaultFileSystem store_files_, disk_;
  LocalShards local_{{.files = &disk_,
                      .folder = []() -> absl::StatusOr<std::string> { return "/cache"; },
                      .reserve_bytes = 0,
                      .idle_seconds = [](const std::string&) { return 0; }}};
  PipelineHarness writer_{{.stages = 2}};
  ShardInfo shard_;   // of the first stage
  std::string copy_;  // its path
};

TEST_F(ShardTensorsLocalTest, ALoadFromCopiesReadsNoShardOfTheStore) {
  CHECK_OK(store_files_.RemoveAll(std::string(kCommitted) + "/" + shard_.file));
  const CheckpointFiles from = Load(0);
  EXPECT_GT(from.bytes, 0);
  EXPECT_EQ(from.local_bytes, from.bytes);
}

TEST_F(ShardTensorsLocalTest, AShardOfAnotherMachineComesFromTheStore) {
  const CheckpointFiles from = Load(1);
  EXPECT_GT(from.bytes, 0);
  EXPECT_EQ(from.local_bytes, 0);
}

TEST_F(ShardTensorsLocalTest, WhateverByteIsDamagedTheValuesAreTheCheckpoints) {
  const std::string intact = disk_.Contents(copy_);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  int dropped = 0;
  constexpr int kTries = 40;
  for (int i = 0; i < kTries; ++i) {
    std::string bytes = intact;
    // Half of them in the header, which is short.
    const size_t end = i % 2 == 0 ? 400 : bytes.size();
    bytes[std::uniform_int_distribution<size_t>(0, end - 1)(random)] ^=
        static_cast<char>(1 << (random() % 8));
    disk_.SetContents(copy_, bytes);
    const CheckpointFiles from = Load(0);
    if (!disk_.Exists(copy_)) ++dropped;
    EXPECT_TRUE(!disk_.Exists(copy_) || from.local_bytes == from.bytes);
    WriteCheckpoint();
  }
  EXPECT_GT(dropped, kTries / 2);
}

TEST_F(ShardTensorsLocalTest, ADamagedCopyIsDroppedOnceAndTheStoreIsRead) {
  std::string bytes = disk_.Contents(copy_);
  bytes.back() ^= 1;  // of the last tensor
  disk_.SetContents(copy_, bytes);
  const CheckpointFiles from = Load(0);
  EXPECT_GT(from.local_bytes, 0);
  EXPECT_LT(from.local_bytes, from.bytes);
  EXPECT_THAT(*disk_.List(kCopies), IsEmpty());
  EXPECT_EQ(Load(0).local_bytes, 0);
}

TEST_F(ShardTensorsLocalTest, WhateverReadOfTheCopyFailsTheValuesAreTheCheckpoints) {
  for (int64_t call = 1;; ++call) {
    FaultFileSystem::Fault fault{.call = call, .from_then_on = call % 2 == 0, .as_posix = true};
    disk_.Inject(fault);
    const CheckpointFiles from = Load(0);
    disk_.ClearFault();
    if (from.local_bytes == from.bytes) break;
    WriteCheckpoint();
    ASSERT_LT(call, 1000);
  }
}

TEST_F(ShardTensorsLocalTest, APowerCutLeavesNoBadUse) {
  for (const Survivors survivors :
       {Survivors::kEntries, Survivors::kContents, Survivors::kLeaves, Survivors::kSynced}) {
    WriteCheckpoint();
    disk_.CutPower(survivors);
    Load(0);
  }
}

TEST_F(ShardTensorsLocalTest, AnotherModelIsTheCheckpointsErrorAndCostsNoCopy) {
  PipelineHarness wider(
      {.stages = 2, .gpt = {.layers = 2, .width = 8, .heads = 2, .context = 3, .vocabulary = 7}});
  CheckpointFiles from{.files = &store_files_, .folder = kCommitted, .local = &local_};
  const absl::Status status =
      LoadTensors(&from, 1, TrainingTensors(wider.cells(0), wider.optimizer(0)), wider.backend(0));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the model has F32 ["));
  EXPECT_THAT(*disk_.List(kCopies), SizeIs(1));
}

}  // namespace
}  // namespace stagecoach
