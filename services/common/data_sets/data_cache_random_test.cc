// Property: whatever happens to the connection, the disk and the room, a read of a data set gives
// the set's bytes or an error.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/testing/temporary_folder.h"
#include "services/common/data_sets/data_cache_testing.h"

namespace stagecoach {
namespace {

constexpr int kCacheSeeds = 12, kCacheReaders = 4, kReadsOfThread = 60;

struct RandomFiles {
  explicit RandomFiles(uint32_t seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 5; ++i) {
      names.push_back(absl::StrCat("f", i));
      const size_t bytes = 1 + random() % (i < 3 ? 2'000'000 : 100'000);
      files[names.back()] = RandomBytes(bytes, random());
    }
  }
  std::map<std::string, std::string> files;
  std::vector<std::string> names;
};

// Changes bytes of a part or of its index, as a torn write after a loss of power. Blocks that a
// process has checked are not looked at again, so this is for parts that nobody has open.
void DamageSomething(const std::string& folder, std::mt19937& random) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  if (paths.empty()) return;
  const std::string path = paths[random() % paths.size()];
  const auto size = static_cast<uint32_t>(std::filesystem::file_size(path));
  if (size == 0) return;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(random() % size);
  file << RandomBytes(std::min<size_t>(1 + random() % 5000, size), random());
}

void ReadAtRandom(const FakeDataStore& store, DataCache& cache, const RandomFiles& set,
                  uint32_t seed, std::atomic<int>* good) {
  std::mt19937 random(seed);
  for (int i = 0; i < kReadsOfThread; ++i) {
    const std::string& name = set.names[random() % set.names.size()];
    const std::string& bytes = set.files.at(name);
    const auto reading = random() % 2 == 0 ? DataSets::Reading::kAll : DataSets::Reading::kSome;
    const auto file = cache.Open(store.Path(name), reading);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto begin = static_cast<int64_t>(random() % bytes.size());
    const auto count = 1 + static_cast<int64_t>(random()) % (std::ssize(bytes) - begin);
    const auto read = ReadRange(*file, begin, count);
    if (!read.ok()) {
      ASSERT_TRUE(absl::IsUnavailable(read.status())) << read.status();
      continue;
    }
    ASSERT_TRUE(*read == bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(count)))
        << name << " from " << begin << ", " << count << " bytes";
    ++*good;
  }
}

TEST(DataCacheRandom, EveryReadGivesTheTrueBytes) {
  for (uint32_t seed = 1; seed <= kCacheSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const TemporaryFolder folder;
    const RandomFiles set(seed);
    FakeDataStore store(std::string(64, 'a'), set.files, 1 << 18);
    std::atomic<uint32_t> reads{seed};
    store.set_fault([&reads](int64_t, std::span<std::byte> into) {
      if (++reads % 9 != 0) return absl::OkStatus();
      std::fill(into.begin(), into.begin() + std::ssize(into) / 2, std::byte{1});
      return absl::UnavailableError("cut");
    });
    std::atomic<int> good{0};
    std::mt19937 random(seed);
    for (int round = 0; round < 3; ++round) {
      // The second process has little room, so it evicts what the first one does not read.
      const auto one = store.Cache(folder.path());
      const auto two = store.Cache(folder.path(), seed % 2 == 0 ? 1'500'000 : int64_t{1} << 40);
      std::vector<std::thread> threads;
      for (int i = 0; i < kCacheReaders; ++i) {
        DataCache& cache = i % 2 == 0 ? *one : *two;
        threads.emplace_back([&store, &cache, &set, &good, seed = uint32_t(random())] {
          ReadAtRandom(store, cache, set, seed, &good);
        });
      }
      for (std::thread& thread : threads) thread.join();
      one->Shutdown();
      two->Shutdown();
      for (int i = 0; i < 4; ++i) DamageSomething(folder.path() + "/data", random);
    }
    EXPECT_GT(good, 3 * kCacheReaders * kReadsOfThread / 4);
  }
}

}  // namespace
}  // namespace stagecoach
