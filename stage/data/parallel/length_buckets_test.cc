#include "stage/data/parallel/length_buckets.h"

#include <map>
#include <vector>

#include "base/numbers/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

std::vector<PairLengths> RandomPairs(int64_t count, uint64_t seed) {
  std::vector<PairLengths> pairs;
  for (int64_t i = 0; i < count; ++i) {
    const auto draw = [&](uint64_t element) {
      const uint32_t bits = RandomBits({.seed = seed}, static_cast<uint64_t>(2 * i) + element);
      return static_cast<int32_t>(2 + bits % 40 + (bits % 7 == 0 ? 40 : 0));
    };
    pairs.push_back({draw(0), draw(1)});
  }
  return pairs;
}

TEST(LengthBuckets, CutWhereTheirShareOfTheTokensIsReached) {
  // 8, 8, 8 and 16 tokens.
  const std::vector<PairLengths> pairs = {{2, 2}, {2, 2}, {4, 4}, {3, 5}, {7, 9}};
  const LengthBuckets two(pairs, 2);
  ASSERT_EQ(two.count(), 2);
  EXPECT_EQ(two.lengths(0), (PairLengths{4, 5}));
  EXPECT_EQ(two.lengths(1), (PairLengths{7, 9}));
  const LengthBuckets one(pairs, 1);
  ASSERT_EQ(one.count(), 1);
  EXPECT_EQ(one.lengths(0), (PairLengths{7, 9}));
}

TEST(LengthBuckets, AreNoMoreThanThereAreLengths) {
  EXPECT_EQ(LengthBuckets(std::vector<PairLengths>{{3, 4}, {4, 1}}, 64).count(), 1);
  EXPECT_EQ(LengthBuckets(std::vector<PairLengths>{{3, 4}, {5, 1}}, 64).count(), 2);
}

TEST(LengthBuckets, APairFitsIntoItsBucketAndNoneIsEmpty) {
  for (const int64_t most : {1, 2, 8, 64}) {
    const std::vector<PairLengths> pairs = RandomPairs(2000, 3);
    const LengthBuckets buckets(pairs, most);
    std::map<int64_t, int64_t> tokens;
    int64_t all = 0;
    for (const PairLengths& pair : pairs) {
      const int64_t bucket = buckets.BucketOf(pair);
      EXPECT_TRUE(pair.FitInto(buckets.lengths(bucket)));
      tokens[bucket] += pair.tokens();
      all += pair.tokens();
    }
    EXPECT_EQ(std::ssize(tokens), buckets.count());
    EXPECT_LE(buckets.count(), most);
    for (int64_t b = 0; b + 1 < buckets.count(); ++b) {
      EXPECT_TRUE(buckets.lengths(b).FitInto(buckets.lengths(b + 1)));
    }
    if (most == 1 || most == 64) continue;
    for (const auto& [bucket, count] : tokens) {
      EXPECT_NEAR(static_cast<double>(count) / static_cast<double>(all), 1.0 / most, 0.07)
          << bucket << " of " << most;
    }
  }
}

TEST(LengthBuckets, RoundingUpGivesTheFirstThatIsLargeEnough) {
  const LengthBuckets buckets(std::vector<PairLengths>{{4, 2}, {3, 9}, {20, 10}}, 64);
  ASSERT_EQ(buckets.count(), 3);
  EXPECT_EQ(buckets.RoundedUp({1, 1}), (PairLengths{4, 2}));
  EXPECT_EQ(buckets.RoundedUp({4, 3}), (PairLengths{4, 9}));
  EXPECT_EQ(buckets.RoundedUp({5, 3}), (PairLengths{20, 10}));
  EXPECT_EQ(buckets.RoundedUp({5, 11}), std::nullopt);
}

}  // namespace
}  // namespace stagecoach
