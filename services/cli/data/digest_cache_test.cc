// A file is read once, and again when it may be another one.
#include "services/cli/data/digest_cache.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

const std::string kDigest(64, 'd');
constexpr int64_t kLater = 10'000'000'000;

LocalFile FileOf(const std::string& here) {
  return {.path = "x",
          .here = here,
          .stamp = {.bytes = 5, .modified_nanos = 1, .changed_nanos = 2, .inode = 3}};
}

TEST(DigestCacheTest, WhatWasKeptIsFoundByTheNextCommand) {
  const TemporaryFolder folder;
  const std::string path = folder.File("cache/stagecoach/digests");
  DigestCache cache(path);
  cache.Keep(FileOf("/a b/c"), kDigest, kLater);
  cache.Save();
  const DigestCache next(path);
  EXPECT_EQ(next.Find(FileOf("/a b/c")), kDigest);
  EXPECT_EQ(next.Find(FileOf("/a")), std::nullopt);
  for (int field = 0; field < 4; ++field) {
    LocalFile other = FileOf("/a b/c");
    int64_t* const numbers[] = {&other.stamp.bytes, &other.stamp.modified_nanos,
                                &other.stamp.changed_nanos};
    if (field < 3) ++*numbers[field];
    if (field == 3) ++other.stamp.inode;
    EXPECT_EQ(next.Find(other), std::nullopt) << field;
  }
}

TEST(DigestCacheTest, AFileThatWasJustChangedIsNotTrusted) {
  const TemporaryFolder folder;
  DigestCache cache(folder.File("digests"));
  LocalFile young = FileOf("/a");
  young.stamp.changed_nanos = kLater - 1;
  cache.Keep(young, kDigest, kLater);
  EXPECT_EQ(cache.Find(young), std::nullopt);
}

TEST(DigestCacheTest, WhatIsNoCacheIsPassedOver) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("digests", "junk\n" + kDigest + " 5 1 2 3\n" + kDigest +
                                                       " 5 1 2 3 /good\n" + "zz 5 1 2 3 /bad\n");
  EXPECT_EQ(DigestCache(path).Find(FileOf("/good")), kDigest);
  EXPECT_EQ(DigestCache(path).Find(FileOf("/bad")), std::nullopt);
  DigestCache nowhere("");
  nowhere.Keep(FileOf("/a"), kDigest, kLater);
  nowhere.Save();
  DigestCache unwritable(folder.File("digests/below"));
  unwritable.Keep(FileOf("/a"), kDigest, kLater);
  unwritable.Save();
}

// Symptom: one file that was changed by the same times cost the digests of all others.
TEST(DigestCacheTest, OneFileIsForgottenAndTheOthersStay) {
  const TemporaryFolder folder;
  const std::string path = folder.File("digests");
  DigestCache cache(path);
  cache.Keep(FileOf("/a"), kDigest, kLater);
  cache.Keep(FileOf("/b"), kDigest, kLater);
  cache.Save();
  DigestCache second(path);
  second.Forget(FileOf("/a"));
  second.Forget(FileOf("/nobody"));
  second.Save();
  const DigestCache next(path);
  EXPECT_EQ(next.Find(FileOf("/a")), std::nullopt);
  EXPECT_EQ(next.Find(FileOf("/b")), kDigest);
}

TEST(DigestCacheTest, TheOldestGo) {
  const TemporaryFolder folder;
  const std::string path = folder.File("digests");
  DigestCache cache(path);
  for (size_t i = 0; i <= DigestCache::kMostFiles; ++i) {
    cache.Keep(FileOf("/" + std::to_string(i)), kDigest, kLater);
  }
  cache.Save();
  const DigestCache next(path);
  EXPECT_EQ(next.Find(FileOf("/0")), std::nullopt);
  EXPECT_EQ(next.Find(FileOf("/1")), kDigest);
}

}  // namespace
}  // namespace stagecoach
