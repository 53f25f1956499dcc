#include "checkpoint/snapshot.h"

#include <algorithm>
#include <limits>

#include "base/files/hash.h"
#include "checkpoint/memory_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

HeldShard ShardOf(uint64_t step, int first, int last, const Manifest& manifest = {.job = "a"}) {
  Manifest own = manifest;
  own.state.step = step;
  HeldShard shard{.step = step, .layers = {{first, last}}};
  shard.manifest = FormatManifest(own);
  shard.info = {.file = ShardFileName({{first, last}}), .bytes = 10, .sha256 = std::string(64, '0')};
  return shard;
}

using Held = std::vector<std::vector<HeldShard>>;

std::optional<uint64_t> StepOf(const Held& held, uint64_t least = 0, uint64_t most = 1000) {
  const std::optional<Snapshot> snapshot = NewestSnapshot(held, 6, least, most);
  if (!snapshot.has_value()) return std::nullopt;
  return snapshot->manifest.state.step;
}

TEST(SnapshotTest, TheNewestStepThatIsWholeCounts) {
  const Held held = {{ShardOf(4, 0, 3), ShardOf(8, 0, 3)}, {ShardOf(4, 3, 6)}};
  EXPECT_EQ(StepOf(held), 4u);
  EXPECT_EQ(StepOf(held, 5), std::nullopt);
  EXPECT_EQ(StepOf(held, 0, 3), std::nullopt) << "nobody has recorded so many steps";
  const std::optional<Snapshot> snapshot = NewestSnapshot(held, 6, 0, 100);
  ASSERT_EQ(snapshot->manifest.shards.size(), 2u);
  EXPECT_EQ(snapshot->manifest.shards[1].file, ShardFileName({{3, 6}}));
  EXPECT_THAT(snapshot->holders, ElementsAre(0, 1));
  EXPECT_TRUE(ParseManifest(FormatManifest(snapshot->manifest)).ok());
  EXPECT_EQ(StepOf({}), std::nullopt);
  EXPECT_EQ(StepOf({{}, {}}), std::nullopt);
}

// A recovery cuts the layers anew, and what stages hold of before stays.
TEST(SnapshotTest, ShardsOfSeveralCutsCoverTheLayersWithoutGapAndOverlap) {
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 2), ShardOf(4, 2, 5)}, {ShardOf(4, 0, 4), ShardOf(4, 4, 6)}}),
            4u);
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 2), ShardOf(4, 2, 5)}, {ShardOf(4, 4, 6)}}), std::nullopt);
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3), ShardOf(4, 2, 6)}}), std::nullopt);
  HeldShard nothing = ShardOf(4, 3, 4);
  nothing.layers = {{3, 3}};
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3), nothing, ShardOf(4, 3, 6)}}), 4u);
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 5)}}), std::nullopt);
}

HeldShard ShardOf(uint64_t step, const ShardLayers& layers, int stages) {
  HeldShard shard = ShardOf(step, 0, 1, {.job = "a", .stages = stages});
  shard.layers = layers;
  shard.info.file = ShardFileName(layers);
  return shard;
}

TEST(SnapshotTest, ShardsOfSeveralCellsCoverTheLayersToo) {
  const HeldShard outer = ShardOf(4, {{0, 1}, {5, 6}}, 2), inner = ShardOf(4, {{1, 3}, {3, 5}}, 2);
  EXPECT_EQ(StepOf({{outer}, {inner}}), 4u);
  EXPECT_EQ(StepOf({{outer}, {ShardOf(4, 1, 5)}}), 4u);
  EXPECT_EQ(StepOf({{outer}, {ShardOf(4, {{1, 3}}, 2)}}), std::nullopt);
  EXPECT_EQ(StepOf({{outer}, {ShardOf(4, {{1, 3}}, 2), ShardOf(4, {{3, 5}}, 2)}}), 4u);
  EXPECT_EQ(StepOf({{outer}, {ShardOf(4, {{1, 3}, {3, 6}}, 2)}}), std::nullopt);
  EXPECT_EQ(StepOf({{outer}, {ShardOf(4, {{3, 5}, {1, 3}}, 2)}}), std::nullopt) << "they ascend";
  EXPECT_EQ(ShardFileName({{0, 1}, {5, 6}}), outer.info.file);
}

// Down and up again; the first cells have a layer more if the cells do not come out even.
ShardLayers LayersOfStage(int stage, int stages, int layers) {
  const int cells = 2 * stages, larger = layers % cells, each = layers / cells;
  ShardLayers ranges;
  for (const int cell : {stage, cells - 1 - stage}) {
    const int first = cell * each + std::min(cell, larger);
    ranges.push_back({first, first + each + (cell < larger ? 1 : 0)});
  }
  return ranges;
}

// Before a recovery there was one stage more. Of the newer cut a stage is lost.
TEST(SnapshotTest, AWholeCutIsFoundBesideALargeOneWithAGap) {
  constexpr int kStages = 48, kLayers = 2 * kStages;
  Held held(kStages);
  for (int stage = 0; stage + 2 < kStages; ++stage) {
    held[stage].push_back(ShardOf(4, LayersOfStage(stage, kStages - 1, kLayers), kStages - 1));
  }
  for (int stage = 0; stage < kStages; ++stage) {
    held[stage].push_back(ShardOf(4, LayersOfStage(stage, kStages, kLayers), kStages));
  }
  const std::optional<Snapshot> snapshot = NewestSnapshot(held, kLayers, 0, 100);
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->manifest.shards.size(), static_cast<size_t>(kStages));
}

// Seen: a loss that is not a number differs from itself, and so did the manifests that have it.
TEST(SnapshotTest, ALossThatIsNotANumberIsTheSameInAllManifests) {
  Manifest lost{.job = "a"};
  lost.state.last_loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3, lost)}, {ShardOf(4, 3, 6, lost)}}), 4u);
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3, lost)}, {ShardOf(4, 3, 6)}}), std::nullopt);
}

TEST(SnapshotTest, ManifestsThatDisagreeAreNoSnapshot) {
  Manifest other{.job = "a"};
  other.state.last_loss = 3;
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3)}, {ShardOf(4, 3, 6, other)}}), std::nullopt);
  Manifest later{.job = "a"};  // the same step, run again after a recovery
  later.term = 7;
  later.stages = 2;
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3)}, {ShardOf(4, 3, 6, later)}}), 4u);
  HeldShard broken = ShardOf(4, 3, 6);
  broken.manifest = "{}";
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3)}, {broken}}), std::nullopt);
  HeldShard of_another_step = ShardOf(5, 3, 6);
  of_another_step.step = 4;
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3)}, {of_another_step}}), std::nullopt);
  HeldShard with_shards = ShardOf(4, 0, 3);
  Manifest listed{.job = "a", .state = {.step = 4}};
  listed.shards.push_back(with_shards.info);
  with_shards.manifest = FormatManifest(listed);
  EXPECT_EQ(StepOf({{with_shards}, {ShardOf(4, 3, 6)}}), std::nullopt);
  // One that disagrees spoils nothing that is whole without it.
  EXPECT_EQ(StepOf({{ShardOf(4, 0, 3), ShardOf(4, 3, 6)}, {ShardOf(4, 3, 6, other)}}), 4u);
}

class OneFolder final : public ReadableFiles {
 public:
  explicit OneFolder(const MemoryShard* shard) : shard_(shard) {}
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return ReadableMemory(shard_->file(), path, nullptr);
  }
  absl::Status Look(const std::string&) override { return absl::OkStatus(); }

 private:
  const MemoryShard* const shard_;
};

TEST(MemoryShardTest, IsTheFileThatACheckpointWouldHave) {
  auto shard = MemoryShard::LayOut(
      {{2, 5}},
      {{.name = "model/b", .shape = Shape({2, 3})}, {.name = "model/a", .shape = Shape({4})}});
  ASSERT_TRUE(shard.ok()) << shard.status();
  ASSERT_EQ(shard->tensors().size(), 2u);
  EXPECT_EQ(shard->tensors()[0].name, "model/a");
  for (size_t i = 0; i < 2; ++i) {
    for (std::byte& one : shard->Tensor(i)) one = static_cast<std::byte>(i + 1);
  }
  const ShardInfo info = shard->Digest([] { return false; }).value();
  EXPECT_FALSE(shard->Digest([] { return true; }).has_value());
  EXPECT_EQ(info.file, "layer-0002-0005.safetensors");
  EXPECT_EQ(info.bytes, static_cast<int64_t>(shard->file().size()));
  OneFolder files(&*shard);
  auto reader = SafetensorsReader::Open(files, info.file);
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<std::byte> bytes(24);
  ASSERT_TRUE(reader->Read(*reader->Find("model/b"), bytes).ok());
  EXPECT_EQ(bytes.back(), std::byte{2});
  EXPECT_EQ(info.tensors.at(1).entry, *reader->Find("model/b"));
  Sha256 digest;
  digest.Update(bytes);
  EXPECT_EQ(info.tensors[1].sha256, digest.Hex());
  const auto file = ReadableMemory(shard->file(), "x", nullptr);
  EXPECT_TRUE(absl::IsDataLoss(file->Read(file->size() - 1, bytes)));
  EXPECT_TRUE(absl::IsDataLoss(file->Read(-1, bytes)));
}

}  // namespace
}  // namespace stagecoach
