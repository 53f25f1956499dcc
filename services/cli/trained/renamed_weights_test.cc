#include "services/cli/trained/renamed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/weight_shards.h"
#include "network/names/name_tables.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RenamedWeightsTest : public testing::Test {
 protected:
  RenamedWeightsTest() {
    const std::vector<TensorSource> tensors = {
        {.name = "ours", .dtype = DType::kF32, .shape = {2}, .bytes = [this] {
           return std::as_bytes(std::span(numbers_));
         }}};
    EXPECT_TRUE(WriteSafetensors(*PosixFileSystem(), folder_.File("ours"), tensors, {}).ok());
  }

  absl::Status Write() {
    return WriteRenamedWeights(*PosixFileSystem(), folder_.File("ours"), Renamed("ours", "other"),
                               folder_.File("theirs"));
  }
  static std::vector<WeightName> Renamed(const std::string& ours, const std::string& other) {
    return {{.ours = ours, .shape = {2}, .parts = {WholeTensor(other, {2})}}};
  }
  std::string TextOf(const std::string& name) const { return FileText(folder_.File(name)); }

  const TemporaryFolder folder_;
  const std::vector<float> numbers_ = {1, 2};
};

// Symptom: an export that was damaged since was renamed, and used by classify, without a word.
TEST_F(RenamedWeightsTest, ADamagedExportIsRefused) {
  ASSERT_TRUE(Write().ok());
  std::string text = TextOf("theirs");
  text.back() = static_cast<char>(text.back() ^ 1);
  folder_.Write("ours", text);
  fs::remove(folder_.File("theirs"));
  const absl::Status status = WriteRenamedWeights(
      *PosixFileSystem(), folder_.File("ours"), Renamed("other", "again"), folder_.File("theirs"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the file is damaged"));
}

TEST_F(RenamedWeightsTest, WhatAnEndedExportHasLeftIsReplaced) {
  folder_.Write("theirs.unfinished", "half of it");
  ASSERT_TRUE(Write().ok());
  const auto reader = SafetensorsReader::Open(*PosixFileSystem(), folder_.File("theirs"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_NE(reader->Find("other"), nullptr);
  EXPECT_FALSE(fs::exists(folder_.File("theirs.unfinished")));
  EXPECT_EQ(Write().code(), absl::StatusCode::kAlreadyExists);
}

// Symptom: `export --names` removed a folder TARGET.unfinished with all that was in it.
TEST_F(RenamedWeightsTest, AFolderOrALinkOfTheUnfinishedFilesNameStays) {
  folder_.Write("theirs.unfinished/letter", "dear reader");
  EXPECT_THAT(std::string(Write().message()),
              HasSubstr("theirs.unfinished: is there already and is no file; take it away, or"));
  EXPECT_EQ(TextOf("theirs.unfinished/letter"), "dear reader");
  fs::rename(folder_.File("theirs.unfinished"), folder_.File("letters"));
  fs::create_symlink("letters/letter", folder_.File("theirs.unfinished"));
  EXPECT_EQ(Write().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs::is_symlink(folder_.File("theirs.unfinished")));
  EXPECT_EQ(TextOf("letters/letter"), "dear reader");
}

// One array for three tensors, one tensor [in, out], and three arrays for one tensor.
class RenamedFolderTest : public testing::Test {
 protected:
  RenamedFolderTest() {
    std::vector<TensorSource> sources;
    for (auto& [name, tensor] : ours_) {
      sources.push_back({name, DType::kF32, tensor.first, [&values = tensor.second] {
                           return absl::StatusOr<std::span<const std::byte>>(
                               std::as_bytes(std::span(values)));
                         }});
    }
    EXPECT_TRUE(WriteSafetensors(*PosixFileSystem(), folder_.File("ours"), sources, {}).ok());
    names_ = {
        {.ours = "a.qkv",
         .shape = {4, 2},
         .parts = {WholeTensor("q", {2, 2}), WholeTensor("k", {1, 2}), WholeTensor("v", {1, 2})}},
        {.ours = "b.up", .shape = {2, 3}, .parts = {PermutedTensor("up", {2, 3}, {1, 0})}}};
    for (int i = 0; i < 3; ++i) {
      WeightPart part = WholeTensor("fused", {3});
      part.first = i;
      part.rows = 1;
      names_.push_back({.ours = absl::StrCat("c.", i), .shape = {1}, .parts = {part}});
    }
  }

  absl::Status Write(int64_t shard_bytes, std::vector<FolderFile> files = {}) {
    return WriteRenamedFolder(
        *PosixFileSystem(), folder_.File("ours"), names_,
        {.target = Theirs(), .files = std::move(files), .shard_bytes = shard_bytes});
  }
  std::string Theirs(const std::string& file = "") const {
    return folder_.File(file.empty() ? "theirs" : "theirs/" + file);
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(Theirs())) {
      files.push_back(entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  static std::map<std::string, std::vector<float>> Values(WeightShards& shards) {
    std::map<std::string, std::vector<float>> values;
    for (const TensorEntry& entry : shards.tensors()) {
      std::vector<float>& tensor = values[entry.name];
      tensor.resize(static_cast<size_t>(entry.shape.elements()));
      EXPECT_TRUE(shards.Read(entry, std::as_writable_bytes(std::span(tensor))).ok());
    }
    return values;
  }
  const std::map<std::string, std::vector<float>> theirs_ = {{"q", {1, 2, 3, 4}},
                                                             {"k", {5, 6}},
                                                             {"v", {7, 8}},
                                                             {"up", {0, 10, 1, 11, 2, 12}},
                                                             {"fused", {1, 2, 3}}};

  const TemporaryFolder folder_;
  std::map<std::string, std::pair<Shape, std::vector<float>>> ours_ = {
      {"a.qkv", {{4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
      {"b.up", {{2, 3}, {0, 1, 2, 10, 11, 12}}},
      {"c.0", {{1}, {1}}},
      {"c.1", {{1}, {2}}},
      {"c.2", {{1}, {3}}}};
  std::vector<WeightName> names_;
};

TEST_F(RenamedFolderTest, FewWeightsAreOneFileWithWhatStandsBesideIt) {
  const absl::Status status = Write(1 << 20, {{"config.json", "{}\n"}});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Files(), ElementsAre("config.json", "model.safetensors"));
  EXPECT_EQ(FileText(Theirs("config.json")), "{}\n");
  auto shards = WeightShards::OpenFile(*PosixFileSystem(), Theirs("model.safetensors"));
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(Values(*shards), theirs_);
  const auto reader = SafetensorsReader::Open(*PosixFileSystem(), Theirs("model.safetensors"));
  EXPECT_EQ(reader->metadata().at("format"), "pt");
}

TEST_F(RenamedFolderTest, ManyWeightsAreShardsWithTheirIndex) {
  const absl::Status status = Write(24);
  ASSERT_TRUE(status.ok()) << status;
  // fused and k are 20 bytes, q 16, up 24, v 8.
  EXPECT_THAT(Files(),
              ElementsAre("model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
                          "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors",
                          "model.safetensors.index.json"));
  EXPECT_THAT(FileText(Theirs("model.safetensors.index.json")), HasSubstr("\"total_size\": 68"));
  auto shards = WeightShards::OpenIndex(*PosixFileSystem(), Theirs("model.safetensors.index.json"));
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(Values(*shards), theirs_);
  for (const std::string& file : Files()) {
    if (!file.ends_with(".safetensors")) continue;
    SafetensorsReader reader = *SafetensorsReader::Open(*PosixFileSystem(), Theirs(file));
    EXPECT_TRUE(reader.metadata().contains(kContentDigestKey));
    EXPECT_TRUE(CheckContent(reader).ok()) << file;
  }
}

TEST_F(RenamedFolderTest, ATensorLargerThanAShardIsOneOfItsOwn) {
  ASSERT_TRUE(Write(1).ok());
  EXPECT_EQ(Files().size(), theirs_.size() + 1);
}

TEST_F(RenamedFolderTest, AFolderThatIsThereStays) {
  folder_.Write("theirs/letter", "dear reader");
  const absl::Status status = Write(1 << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("name another folder with --to"));
  EXPECT_THAT(Files(), ElementsAre("letter"));
  fs::rename(Theirs(), folder_.File("theirs.unfinished"));
  EXPECT_THAT(std::string(Write(1 << 20).message()),
              HasSubstr("theirs.unfinished: is there already; take it away, or"));
  EXPECT_TRUE(fs::exists(folder_.File("theirs.unfinished/letter")));
}

TEST_F(RenamedFolderTest, WeightsOfAnotherNetworkLeaveNothing) {
  names_[1].ours = "b.other";
  const absl::Status status = Write(1 << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no tensor b.other"));
  EXPECT_FALSE(fs::exists(Theirs()));
  EXPECT_FALSE(fs::exists(folder_.File("theirs.unfinished")));
}

}  // namespace
}  // namespace stagecoach
