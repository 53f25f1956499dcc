#include "stage/runtime/shard_tensors.h"

#include "checkpoint/names.h"
#include "checkpoint/testing/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/testing/manifest_file.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

constexpr char kFolder[] = "/a/step-000000000001";

class ShardTensorsTest : public testing::Test {
 protected:
  void SetUp() override {
    CHECK_OK(writer_.TrainStep());
    CHECK_OK(file_system_.MakeFolders(kFolder));
    auto shard = WriteTensors(file_system_, kFolder, writer_.cells(0), writer_.optimizer(0),
                              writer_.backend(0));
    CHECK_OK(shard.status());
    shard_ = *std::move(shard);
    WriteManifest({shard_});
  }

  void WriteManifest(std::vector<ShardInfo> shards) {
    WriteManifestFile(file_system_, kFolder,
                      {.job = "a", .state = {.step = 1}, .shards = std::move(shards)});
  }

  absl::Status LoadInto(PipelineHarness& pipeline, uint64_t step = 1) {
    CheckpointFiles from{.files = &file_system_, .folder = kFolder};
    return LoadTensors(&from, step, TrainingTensors(pipeline.cells(0), pipeline.optimizer(0)),
                       pipeline.backend(0));
  }

  void ExpectDataLoss(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  FaultFileSystem file_system_;
  PipelineHarness writer_{{.stages = 1}}, reader_{{.stages = 1}};
  ShardInfo shard_;
};

TEST_F(ShardTensorsTest, HoldsParametersAndSlotsSortedByName) {
  EXPECT_EQ(shard_.file, "layer-0000-0007.safetensors");
  std::vector<std::string> names;
  for (const ShardTensor& tensor : shard_.tensors) names.push_back(tensor.entry.name);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_THAT(names, testing::Contains("model/0000/token.weight"));
  EXPECT_THAT(names, testing::Contains("opt/m/0000/token.weight"));
  EXPECT_THAT(names, testing::Contains("opt/v/0000/token.weight"));
}

TEST_F(ShardTensorsTest, LoadsWhatWasWritten) {
  ASSERT_FALSE(reader_.Result().state == writer_.Result().state);
  ASSERT_TRUE(LoadInto(reader_).ok());
  EXPECT_TRUE(reader_.Result().state == writer_.Result().state);
}

TEST_F(ShardTensorsTest, RefusesACheckpointOfAnotherStep) {
  const absl::Status status = LoadInto(reader_, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is of step 1, not of step 2"));
}

TEST_F(ShardTensorsTest, NamesAMissingTensor) {
  ShardInfo without = shard_;
  std::erase_if(without.tensors, [](const ShardTensor& tensor) {
    return tensor.entry.name == "opt/v/0001/attention.qkv.weight";
  });
  ASSERT_LT(without.tensors.size(), shard_.tensors.size());
  WriteManifest({without});
  ExpectDataLoss(LoadInto(reader_), "opt/v/0001/attention.qkv.weight");
}

TEST_F(ShardTensorsTest, RefusesATensorOfAnotherShape) {
  PipelineHarness wider(
      {.gpt = {.layers = 2, .width = 8, .heads = 2, .context = 3, .vocabulary = 7}});
  ExpectDataLoss(LoadInto(wider), "the model has F32 [");
}

TEST_F(ShardTensorsTest, RefusesBytesThatAreNotTheManifests) {
  const std::string path = std::string(kFolder) + "/" + shard_.file;
  const std::string intact = file_system_.Contents(path);
  std::string bytes = intact;
  bytes.back() ^= 1;  // the last tensor by name
  file_system_.SetContents(path, bytes);
  ExpectDataLoss(LoadInto(reader_), "digest");
  file_system_.SetContents(path, intact.substr(0, intact.size() - 1));
  EXPECT_EQ(LoadInto(reader_).code(), absl::StatusCode::kDataLoss);
  file_system_.SetContents(path, intact);
  EXPECT_TRUE(LoadInto(reader_).ok());
}

// Symptom: an alias of a bucket was damaged between the coordinator's search and the stages' load, and
// the job failed for good: NOT_FOUND of a first load is taken for a path that was never there.
TEST_F(ShardTensorsTest, WhatIsMissingWasLostSinceTheSearch) {
  for (const std::string& file : {shard_.file, std::string(kManifestFile)}) {
    CHECK_OK(file_system_.RemoveAll(std::string(kFolder) + "/" + file));
    ExpectDataLoss(LoadInto(reader_), file);
  }
}

TEST_F(ShardTensorsTest, PassesOnThatAFileCannotBeRead) {
  file_system_.Inject({.call = 1, .code = absl::StatusCode::kUnavailable, .from_then_on = true});
  EXPECT_EQ(LoadInto(reader_).code(), absl::StatusCode::kUnavailable);
}

TEST_F(ShardTensorsTest, AFullDiskIsAnAnswer) {
  file_system_.SetCapacity(100);
  CHECK_OK(file_system_.MakeFolders("/b"));
  EXPECT_EQ(
      WriteTensors(file_system_, "/b", writer_.cells(0), writer_.optimizer(0), writer_.backend(0))
          .status()
          .code(),
      absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace stagecoach
