#include "services/common/data_sets/data_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/work_words.h"
#include "services/common/data_sets/data_cache_testing.h"

namespace stagecoach {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Reading = DataSets::Reading;

constexpr int64_t kBlock = kCacheBlockBytes;

class DataCacheTest : public ::testing::Test {
 protected:
  // Waits for another thread, with a deadline.
  template <typename Condition>
  static bool Comes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::string PartPath(const std::string& bytes) const {
    return cache_folder_ + "/data/" +
           PartKey{.sha256 = Sha256Hex(bytes), .bytes = std::ssize(bytes)}.FileName();
  }
  std::vector<std::string> Parts() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cache_folder_ + "/data")) {
      if (entry.path().extension() != kPartIndexEnding) names.push_back(entry.path());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const TemporaryFolder folder_;
  const std::string cache_folder_ = folder_.MakeFolder("cache");
  const std::string large_ = RandomBytes(20 * kBlock + 77, 1);
  const std::string a_ = RandomBytes(1000, 2), b_ = RandomBytes(300'000, 3);
  FakeDataStore store_{std::string(64, 'a'),
                       {{"large.bin", large_}, {"in/a", a_}, {"in/b", b_}, {"empty", ""}},
                       1 << 20};
};

TEST_F(DataCacheTest, FilesOfASetAreReadAndFetchedOnce) {
  const auto cache = store_.Cache(cache_folder_);
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("large.bin")).value() == large_);
    EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("in/a")).value() == a_);
    EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("in/b")).value() == b_);
    EXPECT_EQ(ReadWholeFile(*cache, store_.Path("empty")).value(), "");
  }
  EXPECT_EQ(store_.read_bytes(), std::ssize(large_) + std::ssize(a_) + std::ssize(b_));
  EXPECT_EQ(cache->fetched_bytes(), store_.read_bytes());
  EXPECT_GE(cache->cached_bytes(), store_.read_bytes());
  EXPECT_EQ(cache->Open(store_.Path("large.bin"), Reading::kSome)->sha256, Sha256Hex(large_));
  EXPECT_EQ(cache->Open(store_.Path("in/a"), Reading::kSome)->sha256, "") << "one of a pack";
}

TEST_F(DataCacheTest, AnotherProcessFindsWhatOneHasFetched) {
  ASSERT_TRUE(ReadWholeFile(*store_.Cache(cache_folder_), store_.Path("large.bin")).ok());
  const int64_t before = store_.read_bytes();
  const auto cache = store_.Cache(cache_folder_);
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("large.bin")).value() == large_);
  EXPECT_EQ(store_.read_bytes(), before);
}

// In a bucket nobody compares a part's digest. Somebody who knows that of another's file could name
// it, and read the file out of a cache that both share, or put other bytes in its place.
TEST_F(DataCacheTest, AnUnprovenDigestCountsWithinItsSetAlone) {
  FakeDataStore other(std::string(64, 'b'), {{"large.bin", large_}});
  other.Damage(Sha256Hex(large_));
  std::string others_bytes = large_;
  others_bytes.front() ^= 1;
  for (FakeDataStore* const store : {&store_, &other}) store->LeaveUnproven();
  const auto others_cache = other.Cache(cache_folder_), cache = store_.Cache(cache_folder_);
  EXPECT_TRUE(ReadWholeFile(*others_cache, other.Path("large.bin")).value() == others_bytes);
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("large.bin")).value() == large_);
  const auto again = other.Cache(cache_folder_);
  EXPECT_TRUE(ReadWholeFile(*again, other.Path("large.bin")).value() == others_bytes);
  EXPECT_EQ(other.read_bytes(), std::ssize(large_));
  EXPECT_EQ(cache->Open(store_.Path("large.bin"), Reading::kSome)->sha256_of, store_.set());
}

TEST_F(DataCacheTest, OnlyTheBlocksOfARangeAreFetched) {
  const auto cache = store_.Cache(cache_folder_);
  const auto file = cache->Open(store_.Path("large.bin"), Reading::kSome);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ReadRange(*file, 10 * kBlock + 5, 20).value(), large_.substr(10 * kBlock + 5, 20));
  EXPECT_THAT(store_.reads(), ElementsAre(Pair(10 * kBlock, kBlock)));
  // Behind it: whoever goes on gets 4 MiB, here what is left.
  EXPECT_EQ(ReadRange(*file, 11 * kBlock, 1).value(), large_.substr(11 * kBlock, 1));
  EXPECT_THAT(store_.reads(),
              ElementsAre(Pair(10 * kBlock, kBlock), Pair(11 * kBlock, 9 * kBlock + 77)));
}

TEST_F(DataCacheTest, TheRestIsFetchedAheadAndChecked) {
  const auto cache = store_.Cache(cache_folder_);
  ASSERT_TRUE(cache->Open(store_.Path("large.bin"), Reading::kAll).ok());
  const auto whole = PartFile::Open(cache_folder_ + "/data",
                                    {.sha256 = Sha256Hex(large_), .bytes = std::ssize(large_)});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(Comes([&] { return (*whole)->checked(); }));
  EXPECT_EQ(store_.read_bytes(), std::ssize(large_));
}

TEST_F(DataCacheTest, NothingIsFetchedAheadForASetThatTheCellDoesNotRead) {
  const auto cache = store_.Cache(cache_folder_);
  cache->KeepOnly({store_.set()});
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false, go_on = false;
  store_.set_fault([&](int64_t, std::span<std::byte>) {
    std::unique_lock<std::mutex> lock(mutex);
    asked = true;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return go_on; });
    return absl::OkStatus();
  });
  ASSERT_TRUE(cache->Open(store_.Path("large.bin"), Reading::kAll).ok());
  {
    std::unique_lock<std::mutex> lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return asked; }));
    cache->KeepOnly({});  // released
    go_on = true;
    changed.notify_all();
  }
  cache->Shutdown();
  EXPECT_EQ(store_.reads().size(), 1u);
}

TEST_F(DataCacheTest, DamageOnTheDiskIsFoundAndFetchedAgain) {
  ASSERT_TRUE(ReadWholeFile(*store_.Cache(cache_folder_), store_.Path("large.bin")).ok());
  const int64_t before = store_.read_bytes();
  {
    std::fstream file(PartPath(large_), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 * kBlock + 9);
    file.put(static_cast<char>(large_[3 * kBlock + 9] ^ 1));
    std::fstream index(PartPath(large_) + kPartIndexEnding,
                       std::ios::in | std::ios::out | std::ios::binary);
    index.seekp(7 * 8);  // an entry that was torn
    index.put('x');
    ASSERT_TRUE(file.good() && index.good());
  }
  EXPECT_TRUE(ReadWholeFile(*store_.Cache(cache_folder_), store_.Path("large.bin")).value() ==
              large_);
  EXPECT_EQ(store_.read_bytes(), before + 2 * kBlock);
  std::filesystem::remove(PartPath(large_));  // and its index stays
  EXPECT_TRUE(ReadWholeFile(*store_.Cache(cache_folder_), store_.Path("large.bin")).value() ==
              large_);
  EXPECT_EQ(store_.read_bytes(), before + 2 * kBlock + std::ssize(large_));
}

TEST_F(DataCacheTest, APartWithOtherBytesThanItsNameIsDroppedAndNamed) {
  store_.Damage(Sha256Hex(large_));
  const auto cache = store_.Cache(cache_folder_);
  const auto file = cache->Open(store_.Path("large.bin"), Reading::kAll);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(Comes([&] { return absl::IsDataLoss(file->ranges->Need(0, 1)); }));
  EXPECT_THAT(file->ranges->Need(0, 1),
              StatusIs(StatusCode::kDataLoss, HasSubstr(Sha256Hex(large_))));
  EXPECT_FALSE(std::filesystem::exists(PartPath(large_)));
  store_.Damage(Sha256Hex(large_));  // it is right again
  cache->Shutdown();                 // the part is forgotten by then
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("large.bin")).value() == large_);
}

// Nobody knows the digest of an object outside the store. Its name in the cache is one that no
// uploaded part has, or whoever uploads the text behind the digest could put bytes in its place.
TEST_F(DataCacheTest, ALinkedPartIsReadWithoutItsDigest) {
  store_.LinkParts();
  const auto cache = store_.Cache(cache_folder_);
  const auto file = cache->Open(store_.Path("large.bin"), Reading::kAll);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->sha256, "");
  EXPECT_TRUE(Comes([&] { return store_.read_bytes() >= std::ssize(large_); }));
  cache->Shutdown();
  EXPECT_TRUE(ReadRange(*file, 0, file->bytes).value() == large_);
  EXPECT_EQ(store_.read_bytes(), std::ssize(large_));
  EXPECT_THAT(Parts(), testing::Each(testing::EndsWith(".linked")));
}

TEST_F(DataCacheTest, AnErrorOfTheStoreIsTheReadersAndTheNextReadTriesAgain) {
  const auto cache = store_.Cache(cache_folder_);
  store_.set_fault([](int64_t, std::span<std::byte> into) {
    std::fill(into.begin(), into.end(), std::byte{7});  // some came
    return absl::UnavailableError("nothing has moved for 60 s");
  });
  EXPECT_THAT(ReadWholeFile(*cache, store_.Path("in/a")).status(),
              StatusIs(StatusCode::kUnavailable, HasSubstr("nothing has moved")));
  store_.set_fault(nullptr);
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("in/a")).value() == a_);
}

TEST_F(DataCacheTest, ASetNeedsItsGrantAndTakesANewOne) {
  const auto cache = store_.Cache(cache_folder_);
  EXPECT_THAT(cache->Open({std::string(64, 'b'), "large.bin"}, Reading::kSome).status(),
              StatusIs(StatusCode::kPermissionDenied, HasSubstr("no grant")));
  ASSERT_TRUE(ReadWholeFile(*cache, store_.Path("in/a")).ok());
  store_.set_grant("new");
  EXPECT_THAT(
      ReadWholeFile(*cache, store_.Path("large.bin")).status(),
      StatusIs(StatusCode::kPermissionDenied, HasSubstr("grant for the data set has ended")));
  cache->Admit(store_.set(), {"store:/" + store_.folder(), "new"});
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("large.bin")).value() == large_);
}

TEST_F(DataCacheTest, PathsAreFilesOrFolders) {
  const auto cache = store_.Cache(cache_folder_);
  const auto root = cache->List(store_.Path(""));
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(root->size(), 3u);
  EXPECT_EQ((*root)[0].name, "empty");
  EXPECT_TRUE((*root)[1].folder);
  EXPECT_EQ((*root)[2].bytes, std::ssize(large_));
  EXPECT_THAT(cache->Open(store_.Path("in"), Reading::kSome).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  EXPECT_THAT(cache->List(store_.Path("in/a")).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a file")));
  for (const absl::Status& status :
       {cache->Open(store_.Path("x"), Reading::kSome).status(),
        cache->List(store_.Path("x")).status(), cache->Look(store_.Path("x"))}) {
    EXPECT_THAT(status, StatusIs(StatusCode::kNotFound, HasSubstr("stagecoach data show")));
  }
  EXPECT_TRUE(cache->Look(store_.Path("in")).ok());
  EXPECT_TRUE(cache->Look(store_.Path("in/a")).ok());
}

TEST_F(DataCacheTest, TheLeastRecentlyUsedPartGoesButNoneThatIsOpen) {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 4; ++i) files[absl::StrCat(i)] = RandomBytes(4 * kBlock, 10 + i);
  FakeDataStore store(std::string(64, 'c'), files);
  const auto other = store.Cache(cache_folder_);  // of another process
  const auto held = other->Open(store.Path("0"), Reading::kSome);
  ASSERT_TRUE(held.ok() && held->ranges->Need(0, held->bytes).ok());
  const auto cache = store.Cache(cache_folder_, 9 * kBlock);
  for (int i = 1; i < 4; ++i) {
    EXPECT_TRUE(ReadWholeFile(*cache, store.Path(absl::StrCat(i))).value() ==
                files[absl::StrCat(i)]);
  }
  EXPECT_THAT(Parts(), ::testing::Contains(PartPath(files["0"]))) << "the other has it open";
  EXPECT_THAT(Parts(), ::testing::Not(::testing::Contains(PartPath(files["1"]))));
  EXPECT_LE(cache->cached_bytes(), 9 * kBlock);
  EXPECT_TRUE(ReadRange(*held, 0, held->bytes).value() == files["0"]);
}

TEST_F(DataCacheTest, ReadingGoesOnBeyondTheLimitIfAllIsInUse) {
  const auto cache = store_.Cache(cache_folder_, kBlock);
  const auto file = cache->Open(store_.Path("large.bin"), Reading::kAll);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(ReadRange(*file, 0, file->bytes).value() == large_);
  EXPECT_GT(cache->cached_bytes(), 20 * kBlock);
}

TEST_F(DataCacheTest, AFolderThatCannotBeWrittenNamesTheFlag) {
  const auto cache = store_.Cache(folder_.Write("file", "x"));
  EXPECT_THAT(cache->Open(store_.Path("in/a"), Reading::kSome).status().message(),
              AllOf(HasSubstr("--cache-dir"), HasSubstr("give the stage a folder of its own")));
  EXPECT_TRUE(cache->List(store_.Path("in")).ok()) << "which needs no disk";
}

// Symptom: a cleaner of temporary files removed the folder, and every later job of the stage failed.
TEST_F(DataCacheTest, TheFolderMayGoAtAnyTime) {
  const auto cache = store_.Cache(cache_folder_);
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("in/a")).ok());
  std::filesystem::remove_all(cache_folder_);
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("large.bin")).value() == large_);
  EXPECT_TRUE(ReadWholeFile(*cache, store_.Path("in/b")).value() == b_);
}

TEST_F(DataCacheTest, TellsHowMuchOfAFileIsFetched) {
  const auto cache = store_.Cache(cache_folder_);
  const auto file = cache->Open(store_.Path("large.bin"), Reading::kSome);
  ASSERT_TRUE(file.ok()) << file.status();
  WorkWords words;
  const WorkWordsScope scope(&words);
  ASSERT_TRUE(file->ranges->Need(10 * kBlock, 1).ok());
  EXPECT_EQ(words.words(), "fetches large.bin: 49 %");
}

}  // namespace
}  // namespace stagecoach
