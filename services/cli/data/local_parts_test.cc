// Files become parts and a manifest: the same files always the same ones.
#include "services/cli/data/local_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "base/files/hash.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "services/common/data_sets/data_manifest.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

const OnRead kGoOn = [](int64_t, int64_t) { return true; };

FileSet SetOf(const TemporaryFolder& folder) {
  FileSet set;
  EXPECT_TRUE(set.Add(folder.path(), "").ok());
  EXPECT_TRUE(set.Sort().ok());
  return set;
}

std::string BytesOf(const LocalPart& part, int64_t offset = 0) {
  std::string bytes(static_cast<size_t>(part.bytes - offset), '\0');
  PartReader reader(part, offset);
  EXPECT_TRUE(reader.Read(std::as_writable_bytes(std::span(bytes))).ok());
  return bytes;
}

// Clients in other languages make these bytes too: clients/python/tests/data_set_test.py has them.
TEST(LocalPartsTest, TheManifestOfAFewFilesIsThis) {
  const TemporaryFolder folder;
  folder.Write("b.txt", "bb");
  folder.Write("a/1.txt", "1");
  folder.Write("big", std::string(1 << 20, 'x'));
  folder.Write("copy", std::string(1 << 20, 'x'));
  folder.Write("empty", "");
  const FileSet set = SetOf(folder);
  const auto parts = MakeParts(set, kGoOn);
  ASSERT_TRUE(parts.ok()) << parts.status();
  const auto manifest = CheckedManifest::Parse(parts->manifest);
  ASSERT_TRUE(manifest.ok());
  ASSERT_EQ(manifest->manifest().parts_size(), 2) << "the copy needs no part";
  EXPECT_EQ(manifest->manifest().parts(0).sha256(), Sha256Hex("1bb"));
  EXPECT_EQ(manifest->Find("b.txt")->offset(), 1);
  EXPECT_EQ(manifest->Find("big")->part(), 1);
  EXPECT_EQ(manifest->Find("copy")->part(), 1);
  EXPECT_EQ(manifest->Find("empty")->bytes(), 0);
  EXPECT_EQ(parts->files, 5);
  EXPECT_EQ(parts->bytes, (2 << 20) + 3);
  EXPECT_EQ(parts->manifest_sha256,
            "13befd637f138277552a54560d40d57903b64a448ab8c6b32310193ca900c4fb");
}

TEST(LocalPartsTest, PacksEndAt64MiB) {
  const TemporaryFolder folder;
  const std::string most((1 << 20) - 1, 'y');
  for (int i = 100; i < 166; ++i) folder.Write("f" + std::to_string(i), most);
  const FileSet set = SetOf(folder);
  const auto parts = MakeParts(set, kGoOn);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->parts.size(), 2u);
  EXPECT_EQ(parts->parts[0].files.size(), 64u);
  EXPECT_EQ(parts->parts[1].files.size(), 2u);
}

// Any files: their bytes are where the manifest says, from any place on.
TEST(LocalPartsTest, EveryFileIsWhereTheManifestSays) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const TemporaryFolder folder;
  std::map<std::string, std::string> content;
  for (int i = 0; i < 40; ++i) {
    const size_t size = random() % 8 == 0 ? (1 << 20) + random() % 1000 : random() % 3000;
    std::string bytes(size, static_cast<char>('a' + random() % 3));
    const std::string name = "f" + std::to_string(random() % 5) + "/" + std::to_string(i);
    folder.Write(name, bytes);
    content[name] = std::move(bytes);
  }
  const FileSet set = SetOf(folder);
  const auto parts = MakeParts(set, kGoOn);
  ASSERT_TRUE(parts.ok()) << parts.status();
  const auto manifest = CheckedManifest::Parse(parts->manifest);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  for (const LocalPart& part : parts->parts) {
    const std::string whole = BytesOf(part);
    EXPECT_EQ(Sha256Hex(whole), part.sha256);
    const int64_t from = static_cast<int64_t>(random() % static_cast<unsigned>(part.bytes));
    EXPECT_EQ(BytesOf(part, from), whole.substr(static_cast<size_t>(from)));
  }
  for (const auto& [name, bytes] : content) {
    const v1::DataSetFile* const file = manifest->Find(name);
    ASSERT_NE(file, nullptr) << name;
    if (bytes.empty()) continue;
    EXPECT_EQ(BytesOf(parts->parts[static_cast<size_t>(file->part())])
                  .substr(static_cast<size_t>(file->offset()), bytes.size()),
              bytes);
  }
}

TEST(LocalPartsTest, AFileThatChangesIsNamed) {
  const TemporaryFolder folder;
  folder.Write("a", "11");
  const FileSet set = SetOf(folder);
  folder.Write("a", "222");
  EXPECT_THAT(MakeParts(set, kGoOn).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(folder.File("a"))));
  std::filesystem::remove(folder.File("a"));
  EXPECT_THAT(MakeParts(set, kGoOn).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(folder.File("a"))));
}

TEST(LocalPartsTest, AStopEndsTheReading) {
  const TemporaryFolder folder;
  folder.Write("a", "11");
  const FileSet set = SetOf(folder);
  EXPECT_TRUE(absl::IsCancelled(MakeParts(set, [](int64_t, int64_t) { return false; }).status()));
}

}  // namespace
}  // namespace stagecoach
