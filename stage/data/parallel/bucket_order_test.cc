#include "stage/data/parallel/bucket_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/numbers/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

BucketOrder::Parts Parts(std::vector<int64_t> files, int64_t batch_size, int64_t buckets = 4,
                         double sampling = 1) {
  BucketOrder::Parts parts{.seed = 7, .batch_size = batch_size, .sampling = sampling};
  const int64_t all = std::accumulate(files.begin(), files.end(), int64_t{0});
  for (int64_t i = 0; i < all; ++i) {
    const uint32_t bits = RandomBits({.seed = 1}, static_cast<uint64_t>(i));
    parts.buckets.push_back(static_cast<uint8_t>(bits % static_cast<uint32_t>(buckets)));
  }
  parts.files = std::move(files);
  return parts;
}

std::vector<int32_t> BatchOf(const BucketOrder& order, int64_t step) {
  const auto samples = order.Train(static_cast<uint64_t>(step)).samples;
  return {samples.begin(), samples.end()};
}

std::vector<int32_t> EpochOf(const BucketOrder& order, int64_t epoch) {
  std::vector<int32_t> all;
  for (int64_t i = 0; i < order.epoch_batches(); ++i) {
    for (const int32_t sample : BatchOf(order, epoch * order.epoch_batches() + i)) {
      all.push_back(sample);
    }
  }
  return all;
}

TEST(BucketOrder, EachSampleComesOnceAnEpochButForTheRest) {
  for (const auto& [files, batch_size] : std::vector<std::pair<std::vector<int64_t>, int64_t>>{
           {{100}, 10}, {{103}, 10}, {{60, 43}, 10}, {{97}, 96}, {{15}, 5}, {{30, 1}, 1}}) {
    const BucketOrder order(Parts(files, batch_size));
    const int64_t all = std::accumulate(files.begin(), files.end(), int64_t{0});
    SCOPED_TRACE(absl::StrCat(all, " by ", batch_size));
    EXPECT_EQ(order.epoch_batches(), all / batch_size);
    std::set<std::vector<int32_t>> epochs;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<int32_t> samples = EpochOf(order, epoch);
      EXPECT_EQ(std::ssize(samples), all - all % batch_size);
      epochs.insert(samples);
      std::sort(samples.begin(), samples.end());
      EXPECT_EQ(std::unique(samples.begin(), samples.end()), samples.end());
      EXPECT_GE(samples.front(), 0);
      EXPECT_LT(samples.back(), all);
    }
    EXPECT_EQ(epochs.size(), 4u) << "epochs come in different orders";
  }
}

// No sample is left out more often than chance has it: neither long ones nor those of one file.
TEST(BucketOrder, TheRestIsDrawnEvenly) {
  const BucketOrder order(Parts({10, 9}, 10, 3));
  std::map<int32_t, int64_t> seen;
  constexpr int64_t kEpochs = 2000;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (const int32_t sample : EpochOf(order, epoch)) ++seen[sample];
  }
  ASSERT_EQ(seen.size(), 19u);
  for (const auto& [sample, count] : seen) {
    EXPECT_NEAR(static_cast<double>(count) / kEpochs, 10.0 / 19, 0.06) << sample;
  }
}

TEST(BucketOrder, FewerSamplesThanAMiniBatchComeAgain) {
  const BucketOrder order(Parts({3, 2}, 12));
  EXPECT_EQ(order.epoch_batches(), 1);
  std::map<int32_t, int64_t> seen;
  for (int64_t step = 0; step < 5; ++step) {
    for (const int32_t sample : BatchOf(order, step)) ++seen[sample];
  }
  ASSERT_EQ(seen.size(), 5u);
  for (const auto& [sample, count] : seen) EXPECT_NEAR(static_cast<double>(count), 12, 3) << sample;
}

TEST(BucketOrder, IsAPureFunctionOfTheStep) {
  const BucketOrder running(Parts({70, 35}, 9)), resumed(Parts({70, 35}, 9));
  std::vector<std::vector<int32_t>> batches;
  for (int64_t step = 0; step < 40; ++step) batches.push_back(BatchOf(running, step));
  EXPECT_EQ(BatchOf(resumed, 17), batches[17]);
  EXPECT_EQ(BatchOf(resumed, 39), batches[39]);
  EXPECT_EQ(BatchOf(resumed, 3), batches[3]) << "an earlier epoch again";
  BucketOrder::Parts other = Parts({70, 35}, 9);
  other.seed = 8;
  EXPECT_NE(BatchOf(BucketOrder(std::move(other)), 17), batches[17]);
}

TEST(BucketOrder, MostMiniBatchesAreOfOneBucketAndKnowTheirLargest) {
  const BucketOrder::Parts parts = Parts({1003}, 10, 5);
  const BucketOrder order(parts);
  int64_t mixed = 0;
  for (int64_t step = 0; step < order.epoch_batches(); ++step) {
    const BucketOrder::MiniBatch batch = order.Train(static_cast<uint64_t>(step));
    std::set<int64_t> buckets;
    for (const int32_t sample : batch.samples) {
      buckets.insert(parts.buckets[static_cast<size_t>(sample)]);
    }
    EXPECT_EQ(*buckets.rbegin(), batch.bucket);
    mixed += buckets.size() > 1 ? 1 : 0;
  }
  EXPECT_LE(mixed, 5) << "less than one a bucket is left over";
}

// Else an epoch would go from short to long.
TEST(BucketOrder, MiniBatchesOfABucketAreSpreadOverTheEpoch) {
  const BucketOrder order(Parts({2000}, 10, 2));
  int64_t changes = 0, before = -1;
  for (int64_t step = 0; step < order.epoch_batches(); ++step) {
    const int64_t bucket = order.Train(static_cast<uint64_t>(step)).bucket;
    changes += bucket == before ? 0 : 1;
    before = bucket;
  }
  EXPECT_GT(changes, 60) << "of 100 expected";
}

TEST(BucketOrder, FilesOfABucketAreMixed) {
  const BucketOrder order(Parts({500, 500}, 10, 1));
  for (int64_t step = 0; step < 50; ++step) {
    const std::vector<int32_t> batch = BatchOf(order, step);
    const auto first =
        std::count_if(batch.begin(), batch.end(), [](int32_t sample) { return sample < 500; });
    EXPECT_GT(first, 0) << step;
    EXPECT_LT(first, 10) << step;
  }
}

TEST(SampledShares, AreThoseOfTheFilesToThePower) {
  EXPECT_EQ(SampledShares({900, 90, 10}, 1, 1000), (std::vector<int64_t>{900, 90, 10}));
  EXPECT_EQ(SampledShares({900, 90, 10}, 0, 999), (std::vector<int64_t>{333, 333, 333}));
  EXPECT_EQ(SampledShares({900, 90, 10}, 0, 1000), (std::vector<int64_t>{334, 333, 333}));
  // 0.9^0.5 : 0.09^0.5 : 0.01^0.5 = 0.94868 : 0.3 : 0.1
  EXPECT_EQ(SampledShares({900, 90, 10}, 0.5, 1000), (std::vector<int64_t>{703, 223, 74}));
  EXPECT_EQ(SampledShares({1, 1, 1}, 1, 7), (std::vector<int64_t>{3, 2, 2}));
}

TEST(SampledShares, AreTheFilesThemselvesWithoutSampling) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<int64_t> files;
    for (uint64_t i = 0; i < 1 + seed % 9; ++i) {
      files.push_back(1 + RandomBits({.seed = seed}, i) % 5'000'000);
    }
    EXPECT_EQ(SampledShares(files, 1, std::accumulate(files.begin(), files.end(), int64_t{0})),
              files);
  }
}

// A small file comes more often than once, and its samples as often as each other.
TEST(BucketOrder, SamplingRepeatsASmallFileEvenly) {
  const BucketOrder order(Parts({90, 10}, 10, 3, 0));
  EXPECT_EQ(order.shares(), (std::vector<int64_t>{50, 50}));
  std::map<int32_t, int64_t> seen;
  for (int64_t epoch = 0; epoch < 9; ++epoch) {
    for (const int32_t sample : EpochOf(order, epoch)) ++seen[sample];
  }
  ASSERT_EQ(seen.size(), 100u);
  for (const auto& [sample, count] : seen) EXPECT_EQ(count, sample < 90 ? 5 : 45) << sample;
}

}  // namespace
}  // namespace stagecoach
