#include "checkpoint/shard.h"

#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;

TEST(Shard, IsNamedAfterItsLayers) {
  EXPECT_EQ(ShardFileName({{0, 7}}), "layer-0000-0007.safetensors");
  EXPECT_EQ(ShardFileName({{7, 12345}}), "layer-0007-12345.safetensors");
}

TEST(Shard, HoldsItsTensorsSortedByName) {
  FaultFileSystem files;
  ASSERT_TRUE(files.MakeFolders("/f").ok());
  absl::StatusOr<ShardInfo> shard = WriteToyShard(files, "/f", ToyModel(3), 0, 2);
  ASSERT_TRUE(shard.ok()) << shard.status();
  std::vector<std::string> names;
  for (const ShardTensor& tensor : shard->tensors) names.push_back(tensor.entry.name);
  EXPECT_THAT(names, ElementsAre("model/0000/scale", "model/0000/weight", "model/0001/bias",
                                 "opt/m/0000/scale", "opt/m/0000/weight", "opt/m/0001/bias"));
  const std::string bytes = files.Contents("/f/layer-0000-0002.safetensors");
  EXPECT_EQ(shard->bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(shard->sha256, Sha256Hex(bytes));
}

TEST(Shard, ReplacesALeftoverOfTheSameName) {
  FaultFileSystem files;
  ASSERT_TRUE(files.MakeFolders("/f").ok());
  ASSERT_TRUE(WriteToyShard(files, "/f", ToyModel(3), 0, 2).ok());
  absl::StatusOr<ShardInfo> shard = WriteToyShard(files, "/f", ToyModel(4), 0, 2);
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(shard->sha256, Sha256Hex(files.Contents("/f/" + shard->file)));
}

TEST(Shard, TellsWhyATensorCouldNotBeGiven) {
  FaultFileSystem files;
  ASSERT_TRUE(files.MakeFolders("/f").ok());
  const TensorSource broken = {"model/0000/w", DType::kF32, Shape({1}), [] {
                                 return absl::StatusOr<std::span<const std::byte>>(
                                     absl::ResourceExhaustedError("no memory"));
                               }};
  const absl::Status status = WriteShard(files, "/f", {{0, 1}}, {broken}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_NE(status.message().find("model/0000/w"), absl::string_view::npos) << status;
}

// What lies in memory for hours may have changed since it was taken.
TEST(Shard, WrittenFromMemoryIsTheFileThatItsStageWouldWriteOrNone) {
  FaultFileSystem files;
  ASSERT_TRUE(files.MakeFolders("/f").ok());
  ASSERT_TRUE(files.MakeFolders("/g").ok());
  const ShardInfo info = *WriteToyShard(files, "/f", ToyModel(3), 0, 2);
  std::string bytes = files.Contents("/f/" + info.file);
  ASSERT_TRUE(WriteShardBytes(files, "/g", info, std::as_bytes(std::span(bytes))).ok());
  EXPECT_EQ(files.Contents("/g/" + info.file), bytes);
  bytes[bytes.size() / 2] ^= 4;
  const absl::Status changed = WriteShardBytes(files, "/g", info, std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(absl::IsDataLoss(changed)) << changed;
  EXPECT_NE(changed.message().find(info.sha256), absl::string_view::npos) << changed;
  EXPECT_FALSE(files.Exists("/g/" + info.file));
}

}  // namespace
}  // namespace stagecoach
