#include "stage/data/read_ahead.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/threads/progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

constexpr size_t kSamples = 3;  // of a micro-batch
constexpr uint64_t kBatches = 20;
constexpr std::chrono::seconds kDeadline(20);

// Sample j's image is j, of an evaluation -j. Who looks can wait until something was made.
class Studio {
 public:
  ReadAhead::ItemsOf items() {
    return [](bool training, uint64_t n) {
      std::vector<ReadAhead::Item> items;
      for (size_t i = 0; i < kSamples && n < kBatches; ++i) {
        items.push_back({.training = training, .sample = static_cast<int64_t>(n * kSamples + i)});
      }
      return items;
    };
  }
  ReadAhead::Make make() {
    return [this](const ReadAhead::Item& item, std::span<std::byte> image) {
      const int64_t value = item.training ? item.sample : -item.sample;
      std::memcpy(image.data(), &value, sizeof(value));
      std::unique_lock<std::mutex> lock(mutex_);
      ++made_[value];
      changed_.notify_all();
      changed_.wait(lock, [&] { return item.sample < held_from_; });
      return failing_.contains(item.sample)
                 ? absl::DataLossError(absl::StrCat("sample ", item.sample))
                 : absl::OkStatus();
    };
  }
  void Fail(std::set<int64_t> samples) { failing_ = std::move(samples); }
  // Samples from this one on are begun and not made.
  void HoldFrom(int64_t sample) {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_from_ = sample;
    changed_.notify_all();
  }
  bool WaitUntilMade(size_t samples) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return made_.size() >= samples; });
  }
  std::map<int64_t, int> made() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return made_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, int> made_;  // how often each
  int64_t held_from_ = INT64_MAX;
  std::set<int64_t> failing_;
};

ReadAhead::Options OptionsOf(int threads, size_t ahead = 4) {
  return {.threads = threads, .image_bytes = sizeof(int64_t), .ahead = ahead};
}

std::vector<int64_t> ImagesOf(const absl::StatusOr<std::vector<std::byte>>& bytes) {
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return {};
  std::vector<int64_t> images(bytes->size() / sizeof(int64_t));
  if (!images.empty()) std::memcpy(images.data(), bytes->data(), bytes->size());
  return images;
}
std::vector<int64_t> ExpectedOf(uint64_t n, int64_t sign = 1) {
  std::vector<int64_t> images;
  for (size_t i = 0; i < kSamples; ++i) {
    images.push_back(sign * static_cast<int64_t>(n * kSamples + i));
  }
  return images;
}

TEST(ReadAhead, GivesTheSameWithAnyNumberOfThreadsAndInAnyOrder) {
  for (const int threads : {0, 1, 4}) {
    Studio studio;
    ReadAhead ahead(OptionsOf(threads), studio.items(), studio.make());
    for (const uint64_t n : {0, 1, 2, 3, 9, 10, 4, 5, 19, 0}) {
      EXPECT_EQ(ImagesOf(ahead.Take(true, n)), ExpectedOf(n)) << threads << " threads";
      EXPECT_EQ(ImagesOf(ahead.Take(false, n)), ExpectedOf(n, -1)) << threads << " threads";
    }
    EXPECT_TRUE(ImagesOf(ahead.Take(false, kBatches)).empty());
  }
}

TEST(ReadAhead, MakesWhatComesNextUnasked) {
  Studio studio;
  ReadAhead ahead(OptionsOf(2, 4), studio.items(), studio.make());
  EXPECT_EQ(ImagesOf(ahead.Take(true, 0)), ExpectedOf(0));
  EXPECT_TRUE(studio.WaitUntilMade(5 * kSamples)) << "four more";
  for (uint64_t n = 1; n <= 4; ++n) EXPECT_EQ(ImagesOf(ahead.Take(true, n)), ExpectedOf(n));
  for (const auto& [image, times] : studio.made()) EXPECT_EQ(times, 1) << image;
}

// One more micro-batch is begun for each that is taken, and none beyond.
TEST(ReadAhead, IsBoundedByMicroBatchesAndByBytes) {
  Studio studio;
  {
    ReadAhead ahead(OptionsOf(2, 4), studio.items(), studio.make());
    ImagesOf(ahead.Take(true, 0));
    ImagesOf(ahead.Take(true, 1));
    EXPECT_TRUE(studio.WaitUntilMade(6 * kSamples));
  }
  EXPECT_EQ(studio.made().size(), 6 * kSamples) << "all threads are gone: it stays so";
  Studio small;
  {
    ReadAhead::Options options = OptionsOf(2, 4);
    options.bytes_ahead = 2 * kSamples * sizeof(int64_t);
    ReadAhead ahead(options, small.items(), small.make());
    ImagesOf(ahead.Take(true, 0));
    EXPECT_TRUE(small.WaitUntilMade(2 * kSamples));
  }
  EXPECT_LE(small.made().size(), 3 * kSamples);
}

TEST(ReadAhead, AnErrorComesWithTheMicroBatchThatNeedsTheSample) {
  for (const int threads : {0, 3}) {
    Studio studio;
    studio.Fail({8, 7});
    ReadAhead ahead(OptionsOf(threads), studio.items(), studio.make());
    for (uint64_t n = 0; n < 2; ++n) EXPECT_EQ(ImagesOf(ahead.Take(true, n)), ExpectedOf(n));
    const absl::Status status = ahead.Take(true, 2).status();
    EXPECT_EQ(status, absl::DataLossError("sample 7")) << "the first of them";
    EXPECT_EQ(ImagesOf(ahead.Take(true, 3)), ExpectedOf(3));
    EXPECT_EQ(ahead.Take(true, 2).status(), status) << "as often as it is asked for";
  }
}

// As the layers and the objective of an autoencoder, the latter a mini-batch behind.
TEST(ReadAhead, TwoReadersEachHaveTheirCourse) {
  Studio studio;
  {
    ReadAhead ahead(OptionsOf(2, 2), studio.items(), studio.make());
    for (uint64_t step = 0; step < 4; ++step) {
      for (uint64_t n = 2 * step; n < 2 * step + 2; ++n) {
        EXPECT_EQ(ImagesOf(ahead.Take(true, n)), ExpectedOf(n));
      }
      for (uint64_t n = 2 * step; n < 2 * step + 2; ++n) {
        EXPECT_EQ(ImagesOf(ahead.Take(true, n)), ExpectedOf(n));
      }
    }
  }
  for (const auto& [image, times] : studio.made()) EXPECT_LE(times, 3) << image;
}

// An evaluation between two steps leaves what is ahead of training.
TEST(ReadAhead, AnEvaluationTakesNothingFromTraining) {
  Studio studio;
  ReadAhead ahead(OptionsOf(1, 3), studio.items(), studio.make());
  for (uint64_t n = 0; n < 3; ++n) ImagesOf(ahead.Take(true, n));
  for (int evaluation = 0; evaluation < 3; ++evaluation) {
    for (uint64_t n = 0; n < kBatches; ++n) ImagesOf(ahead.Take(false, n));
  }
  for (uint64_t n = 3; n < 9; ++n) ImagesOf(ahead.Take(true, n));
  for (const auto& [image, times] : studio.made()) EXPECT_LE(times, image > 0 ? 1 : 4) << image;
}

TEST(ReadAhead, EndsWhileSamplesAreBeingMade) {
  Studio studio;
  studio.HoldFrom(3);
  std::optional<ReadAhead> ahead(std::in_place, OptionsOf(2), studio.items(), studio.make());
  EXPECT_EQ(ImagesOf(ahead->Take(true, 0)), ExpectedOf(0));
  EXPECT_TRUE(studio.WaitUntilMade(5)) << "both threads are in the next one";
  // Whoever ends it waits for them.
  Thread other("release", [&studio] { studio.HoldFrom(INT64_MAX); });
  ahead.reset();
  const size_t made = studio.made().size();
  EXPECT_GE(made, 5u);
  EXPECT_LE(made, 5 * kSamples);
}

TEST(ReadAhead, TakingTicks) {
  ProgressCounter counter;
  const ProgressScope scope(&counter);
  Studio studio;
  ReadAhead ahead(OptionsOf(0), studio.items(), studio.make());
  ImagesOf(ahead.Take(true, 0));
  EXPECT_GE(counter.count(), kSamples);
}

}  // namespace
}  // namespace stagecoach
