// The logarithm of the softmax beside plain sums in long double.
#include "decoding/log_softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace stagecoach {
namespace {

double PlainLogSoftmax(const std::vector<float>& logits, int32_t token) {
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - logits[token]);
  return static_cast<double>(-std::log(sum));
}

void ExpectPlain(const std::vector<float>& logits) {
  const LogSoftmax log_softmax(logits);
  for (int32_t token = 0; token < std::ssize(logits); token += 1 + token) {
    const double expected = PlainLogSoftmax(logits, token);
    EXPECT_NEAR(log_softmax.Of(token), expected, 1e-6 + 1e-7 * std::abs(expected)) << token;
  }
}

TEST(LogSoftmax, OfRowsOfEveryLength) {
  std::mt19937 random(1);
  for (size_t length = 1; length < 600; ++length) {
    SCOPED_TRACE(length);
    std::vector<float> logits(length);
    const float scale = std::vector{0.1f, 3.0f, 30.0f}[length % 3];
    for (float& logit : logits) logit = (static_cast<float>(random()) * 0x1p-31f - 1) * scale;
    ExpectPlain(logits);
  }
}

// Their exponentials are in error all alike.
TEST(LogSoftmax, OfManyEqualLogitsBelowOne) {
  for (const float less : {0.3f, 3.7f, 9.9f, 12.3f}) {
    std::vector<float> logits(32000, 1.7f - less);
    logits[17] = 1.7f;
    ExpectPlain(logits);
  }
}

TEST(LogSoftmax, FindsTheGreatestInEveryPlace) {
  for (size_t place = 0; place < 300; ++place) {
    std::vector<float> logits(300, -500.0f);
    logits[place] = 500;
    EXPECT_EQ(LogSoftmax(logits).Of(static_cast<int32_t>(place)), 0) << place;
    EXPECT_EQ(LogSoftmax(logits).Of(place == 0 ? 1 : 0), -1000) << place;
  }
}

TEST(LogSoftmax, OfLargeLogitsIsExact) {
  const std::vector<float> logits = {3e38f, 3e38f, -3e38f};
  EXPECT_FLOAT_EQ(LogSoftmax(logits).Of(1), std::log(0.5));
}

}  // namespace
}  // namespace stagecoach
