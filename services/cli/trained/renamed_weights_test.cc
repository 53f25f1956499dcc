#include "services/cli/trained/renamed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/safetensors/safetensors.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;
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
    return WriteRenamedWeights(*PosixFileSystem(), folder_.File("ours"),
                               {{.ours = "ours", .other = "other", .shape = {2}}},
                               folder_.File("theirs"));
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
      *PosixFileSystem(), folder_.File("ours"), {{.ours = "other", .other = "again", .shape = {2}}},
      folder_.File("theirs"));
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

}  // namespace
}  // namespace stagecoach
