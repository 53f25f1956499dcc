#include "services/common/data_sets/data_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

v1::DataManifest Manifest() {
  v1::DataManifest manifest;
  const auto part = [&](char digit, int64_t bytes) {
    v1::DataPart& made = *manifest.add_parts();
    made.set_sha256(std::string(64, digit));
    made.set_bytes(bytes);
  };
  const auto file = [&](const std::string& path, int64_t in, int64_t offset, int64_t bytes) {
    v1::DataSetFile& made = *manifest.add_files();
    made.set_path(path);
    made.set_part(in);
    made.set_offset(offset);
    made.set_bytes(bytes);
  };
  part('a', 10);
  part('b', 100);
  file("empty", 0, 0, 0);
  file("train-2/x", 0, 0, 4);
  file("train/cats/1.png", 0, 4, 6);
  file("train/cats/2.png", 1, 0, 100);
  file("train/dogs.txt", 1, 99, 1);
  return manifest;
}

// All parts are objects below there.
void Link(v1::DataManifest* manifest, const std::string& source, const std::string& etag) {
  for (v1::DataPart& part : *manifest->mutable_parts()) {
    part.set_source(source + "/" + part.sha256().substr(0, 1));
    part.set_etag(etag);
  }
}

TEST(DataManifestTest, TheSourceIsTheFolderOfAllParts) {
  v1::DataManifest manifest = Manifest();
  EXPECT_EQ(CheckedManifest::Parse(manifest.SerializeAsString())->source(), "");
  Link(&manifest, "s3://corpora/en", "1-2");
  EXPECT_EQ(CheckedManifest::Parse(manifest.SerializeAsString())->source(), "s3://corpora/en");
  manifest.mutable_parts(1)->set_source("s3://corpora/english");
  EXPECT_EQ(CheckedManifest::Parse(manifest.SerializeAsString())->source(), "s3://corpora");
  manifest.mutable_parts(1)->set_source("s3://other/en");
  EXPECT_EQ(CheckedManifest::Parse(manifest.SerializeAsString())->source(), "s3://");
}

TEST(DataManifestTest, FindsFilesAndListsFolders) {
  const auto checked = CheckedManifest::Parse(Manifest().SerializeAsString());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->bytes(), 111);
  ASSERT_NE(checked->Find("train/cats/1.png"), nullptr);
  EXPECT_EQ(checked->Find("train/cats/1.png")->offset(), 4);
  EXPECT_EQ(checked->Find("train/cats"), nullptr);
  EXPECT_EQ(checked->Find("train/cats/3.png"), nullptr);

  const auto names = [&](const char* folder) {
    std::string text;
    for (const CheckedManifest::Entry& entry : checked->List(folder)) {
      text += entry.name + (entry.folder ? "/ " : ":" + std::to_string(entry.bytes) + " ");
    }
    return text;
  };
  EXPECT_EQ(names(""), "empty:0 train/ train-2/ ");
  EXPECT_EQ(names("train"), "cats/ dogs.txt:1 ");
  EXPECT_EQ(names("train/cats"), "1.png:6 2.png:100 ");
  EXPECT_EQ(names("train/cats/1.png"), "");
  EXPECT_EQ(names("tra"), "");
}

TEST(DataManifestTest, RefusesWhatDoesNotFit) {
  struct Case {
    std::function<void(v1::DataManifest*)> spoil;
    const char* why;
  };
  const std::vector<Case> cases = {
      {[](auto* m) { m->clear_files(); }, "has no file"},
      {[](auto* m) { m->mutable_parts(0)->set_sha256("../etc/passwd"); }, "hexadecimal"},
      {[](auto* m) { m->mutable_parts(0)->set_sha256(m->parts(1).sha256()); }, "twice"},
      {[](auto* m) { m->mutable_parts(0)->set_bytes(0); }, "out of range"},
      {[](auto* m) {
         m->mutable_parts(0)->set_bytes(INT64_MAX);
         m->mutable_parts(1)->set_bytes(INT64_MAX);
       },
       "out of range"},
      {[](auto* m) { m->mutable_files(1)->set_path("../x"); }, "\"..\""},
      {[](auto* m) { m->mutable_files(1)->set_path("z"); }, "behind the one before"},
      {[](auto* m) { m->mutable_files(1)->set_path("empty"); }, "behind the one before"},
      {[](auto* m) { m->mutable_files(0)->set_path("train"); }, "lies in a file"},
      {[](auto* m) { m->mutable_files(1)->set_part(2); }, "has no part"},
      {[](auto* m) { m->mutable_files(1)->set_part(-1); }, "has no part"},
      {[](auto* m) { m->mutable_files(2)->set_bytes(7); }, "within its part"},
      {[](auto* m) { m->mutable_files(2)->set_offset(-1); }, "within its part"},
      {[](auto* m) { m->mutable_files(2)->set_bytes(-1); }, "within its part"},
      {[](auto* m) { m->mutable_files(2)->set_offset(INT64_MAX); }, "within its part"},
      {[](auto* m) { m->mutable_parts(1)->set_source("s3://corpora/b"); }, "and some were not"},
      {[](auto* m) { Link(m, "corpora/a", "1"); }, "is no s3://BUCKET/KEY"},
      {[](auto* m) { Link(m, "s3://corpora/../a", "1"); }, "is no s3://BUCKET/KEY"},
      {[](auto* m) { Link(m, "s3://corpora/a", ""); }, "its ETag is none"},
      {[](auto* m) { Link(m, "s3://corpora/a", "1\r\nX: y"); }, "its ETag is none"},
  };
  for (const Case& each : cases) {
    v1::DataManifest manifest = Manifest();
    each.spoil(&manifest);
    const auto checked = CheckedManifest::Parse(manifest.SerializeAsString());
    ASSERT_FALSE(checked.ok()) << each.why;
    EXPECT_THAT(std::string(checked.status().message()), HasSubstr(each.why));
  }
  EXPECT_FALSE(CheckedManifest::Parse("no manifest").ok());
}

}  // namespace
}  // namespace stagecoach
