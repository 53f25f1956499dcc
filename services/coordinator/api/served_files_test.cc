// What clients may fetch, while files come and grow.
#include "services/coordinator/api/served_files.h"

#include <gtest/gtest.h>

#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

std::string TextOf(const absl::StatusOr<std::vector<v1::ExportedFile>>& files) {
  if (!files.ok()) return files.status().ToString();
  std::string text;
  for (const v1::ExportedFile& file : *files) {
    text += file.name() + " " + std::to_string(file.bytes()) + "\n";
  }
  return text;
}

TEST(ServedFilesTest, OfAnExportItsFilesAlone) {
  const TemporaryFolder folder;
  folder.Write("model.safetensors", "1234");
  folder.Write("stagecoach.json", "{}");
  folder.Write("model.safetensors.tmp-1", "half");
  EXPECT_EQ(TextOf(ExportFilesIn(*PosixFileSystem(), folder.path())),
            "model.safetensors 4\nstagecoach.json 2\n");
  EXPECT_TRUE(absl::IsNotFound(ExportFilesIn(*PosixFileSystem(), folder.File("nowhere")).status()));
}

TEST(ServedFilesTest, OfAHistoryWholeLines) {
  const TemporaryFolder folder;
  const auto listed = [&](const std::string& text) {
    folder.Write("metrics.jsonl", text);
    return TextOf(RecordFilesIn(*PosixFileSystem(), folder.path()));
  };
  EXPECT_EQ(listed(""), "metrics.jsonl 0\n");
  EXPECT_EQ(listed("half"), "metrics.jsonl 0\n");
  EXPECT_EQ(listed("a\n"), "metrics.jsonl 2\n");
  EXPECT_EQ(listed("a\nb\nhalf"), "metrics.jsonl 4\n");
  // Longer than what is read at a time.
  EXPECT_EQ(listed("a\n" + std::string(200000, 'b')), "metrics.jsonl 2\n");
  EXPECT_EQ(listed(std::string(200000, 'b') + "\n" + std::string(65536, 'c')),
            "metrics.jsonl 200001\n");
}

TEST(ServedFilesTest, OfAHistoryNothingElse) {
  const TemporaryFolder folder;
  EXPECT_EQ(TextOf(RecordFilesIn(*PosixFileSystem(), folder.File("nowhere"))), "");
  folder.Write("events.out.tfevents.1.host", "123");
  folder.Write("events.out.tfevents.1.a host", "a name that the store does not take");
  folder.Write("notes", "an operator's");
  EXPECT_EQ(TextOf(RecordFilesIn(*PosixFileSystem(), folder.path())),
            "events.out.tfevents.1.host 3\n");
}

}  // namespace
}  // namespace stagecoach
