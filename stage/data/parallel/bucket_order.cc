#include "stage/data/parallel/bucket_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "base/threads/progress.h"

namespace stagecoach {
namespace {

// Permutations of one epoch differ by these, in the high word of what PermuteIndex calls the epoch.
constexpr uint64_t kOfFile = 1, kOfLeftOut = 0x2000, kOfMiniBatches = 0x2001, kOfBucket = 0x3000;

uint64_t Permuted(uint64_t seed, uint64_t purpose, uint64_t turn, int64_t size, int64_t index) {
  const uint64_t key = purpose << 32 | (turn & std::numeric_limits<uint32_t>::max());
  return PermuteIndex(seed, key, static_cast<uint64_t>(size), static_cast<uint64_t>(index));
}

void TickNowAndThen(int64_t i) {
  if (i % (int64_t{1} << 16) == 0) TickProgress();
}

std::vector<int32_t> PermutedAll(uint64_t seed, uint64_t purpose, uint64_t epoch,
                                 std::span<const int32_t> all) {
  std::vector<int32_t> permuted;
  permuted.reserve(all.size());
  for (int64_t i = 0; i < std::ssize(all); ++i) {
    permuted.push_back(all[Permuted(seed, purpose, epoch, std::ssize(all), i)]);
    TickNowAndThen(i);
  }
  return permuted;
}

}  // namespace

std::vector<int64_t> SampledShares(const std::vector<int64_t>& files, double sampling,
                                   int64_t drawn) {
  const int64_t all = std::accumulate(files.begin(), files.end(), int64_t{0});
  std::vector<double> weights;
  for (const int64_t samples : files) {
    const double share = static_cast<double>(samples) / static_cast<double>(all);
    weights.push_back(std::pow(share, sampling));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  // In units of 2^-20 samples: rounding of sums and powers is far below one.
  constexpr int64_t kOne = int64_t{1} << 20;
  std::vector<int64_t> shares, order, parts;
  int64_t left = drawn;
  for (size_t i = 0; i < files.size(); ++i) {
    const double exact = weights[i] / sum * static_cast<double>(drawn);
    const int64_t units = std::llround(exact * static_cast<double>(kOne));
    shares.push_back(units / kOne);
    parts.push_back(units % kOne);
    order.push_back(static_cast<int64_t>(i));
    left -= shares.back();
  }
  // The rest goes to the files that have lost most by rounding down.
  std::stable_sort(order.begin(), order.end(), [&parts](int64_t a, int64_t b) {
    return parts[static_cast<size_t>(a)] > parts[static_cast<size_t>(b)];
  });
  CHECK(left >= 0 && left <= std::ssize(order)) << left << " of " << drawn;
  for (int64_t i = 0; i < left; ++i) {
    ++shares[static_cast<size_t>(order[static_cast<size_t>(i)])];
  }
  return shares;
}

BucketOrder::BucketOrder(Parts parts)
    : parts_(std::move(parts)),
      all_(std::ssize(parts_.buckets)),
      drawn_(std::max(all_, parts_.batch_size)),
      epoch_batches_(drawn_ / std::max<int64_t>(parts_.batch_size, 1)),
      shares_(SampledShares(parts_.files, parts_.sampling, drawn_)) {
  CHECK_GT(parts_.batch_size, 0);
  CHECK(std::all_of(parts_.files.begin(), parts_.files.end(), [](int64_t n) { return n > 0; }));
  CHECK_EQ(std::accumulate(parts_.files.begin(), parts_.files.end(), int64_t{0}), all_);
  CHECK_LE(all_, std::numeric_limits<int32_t>::max());
}

std::vector<int32_t> BucketOrder::Drawn(uint64_t epoch) const {
  std::vector<int32_t> drawn;
  drawn.reserve(static_cast<size_t>(drawn_));
  int64_t first = 0;
  for (size_t file = 0; file < shares_.size(); ++file) {
    const int64_t samples = parts_.files[file];
    for (int64_t i = 0; i < shares_[file]; ++i) {
      const uint64_t n = epoch * static_cast<uint64_t>(shares_[file]) + static_cast<uint64_t>(i);
      const auto all = static_cast<uint64_t>(samples);
      drawn.push_back(static_cast<int32_t>(
          first + static_cast<int64_t>(Permuted(parts_.seed, kOfFile + file, n / all, samples,
                                                static_cast<int64_t>(n % all)))));
      TickNowAndThen(i);
    }
    first += samples;
  }
  for (int64_t i = epoch_batches_ * parts_.batch_size; i < drawn_; ++i) {
    drawn[Permuted(parts_.seed, kOfLeftOut, epoch, drawn_, i)] = -1;
  }
  std::erase(drawn, -1);
  return drawn;
}

// Whole mini-batches of each bucket, then the mixed ones.
std::vector<int32_t> BucketOrder::InBuckets(uint64_t epoch) const {
  std::vector<std::vector<int32_t>> buckets;
  for (const int32_t sample : Drawn(epoch)) {
    const size_t bucket = parts_.buckets[static_cast<size_t>(sample)];
    if (bucket >= buckets.size()) buckets.resize(bucket + 1);
    buckets[bucket].push_back(sample);
  }
  std::vector<int32_t> samples, mixed;
  samples.reserve(static_cast<size_t>(epoch_batches_ * parts_.batch_size));
  for (size_t b = 0; b < buckets.size(); ++b) {
    const std::vector<int32_t> permuted =
        PermutedAll(parts_.seed, kOfBucket + b, epoch, buckets[b]);
    const int64_t whole = std::ssize(permuted) / parts_.batch_size * parts_.batch_size;
    samples.insert(samples.end(), permuted.begin(), permuted.begin() + whole);
    mixed.insert(mixed.end(), permuted.begin() + whole, permuted.end());
  }
  samples.insert(samples.end(), mixed.begin(), mixed.end());
  return samples;
}

BucketOrder::Epoch BucketOrder::Make(uint64_t number) const {
  Epoch epoch{.number = number};
  const std::vector<int32_t> ordered = InBuckets(number);
  CHECK_EQ(std::ssize(ordered), epoch_batches_ * parts_.batch_size);
  epoch.samples.reserve(ordered.size());
  for (int64_t i = 0; i < epoch_batches_; ++i) {
    const auto place =
        static_cast<int64_t>(Permuted(parts_.seed, kOfMiniBatches, number, epoch_batches_, i));
    const auto begin = ordered.begin() + place * parts_.batch_size;
    epoch.samples.insert(epoch.samples.end(), begin, begin + parts_.batch_size);
  }
  return epoch;
}

BucketOrder::MiniBatch BucketOrder::Train(uint64_t step) const {
  const auto batches = static_cast<uint64_t>(epoch_batches_);
  const uint64_t number = step / batches;
  if (!epoch_.has_value() || epoch_->number != number) epoch_ = Make(number);
  const auto size = static_cast<size_t>(parts_.batch_size);
  MiniBatch batch{.samples = std::span<const int32_t>(epoch_->samples)
                                 .subspan(static_cast<size_t>(step % batches) * size, size)};
  for (const int32_t sample : batch.samples) {
    batch.bucket = std::max<int64_t>(batch.bucket, parts_.buckets[static_cast<size_t>(sample)]);
  }
  return batch;
}

}  // namespace stagecoach
