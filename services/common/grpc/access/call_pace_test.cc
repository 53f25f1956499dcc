#include "services/common/grpc/access/call_pace.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/testing/manual_clock.h"

namespace stagecoach {
namespace {

constexpr int64_t kSecond = 1000000000;

int Taken(CallPace& pace, const std::string& caller, int tries) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) taken += pace.Take(caller);
  return taken;
}

TEST(CallPace, HasAStockForBurstsThatComesBackWithTime) {
  ManualClock clock(7 * kSecond);
  CallPace pace({.per_second = 10, .stock = 25}, &clock);
  EXPECT_EQ(Taken(pace, "ann", 100), 25);
  clock.AdvanceNanos(kSecond / 2);
  EXPECT_EQ(Taken(pace, "ann", 100), 5);
  clock.AdvanceNanos(3600 * kSecond);
  EXPECT_EQ(Taken(pace, "ann", 100), 25) << "no more than that";
}

TEST(CallPace, EachCallerHasItsOwn) {
  ManualClock clock(kSecond);
  CallPace pace({.per_second = 1, .stock = 2}, &clock);
  EXPECT_EQ(Taken(pace, "ann", 9), 2);
  EXPECT_EQ(Taken(pace, "bob", 9), 2);
}

TEST(CallPace, ForgetsWhoCallsNoMore) {
  ManualClock clock(kSecond);
  CallPace pace({.per_second = 10, .stock = 20}, &clock);
  for (int i = 0; i < 5000; ++i) {
    pace.Take(absl::StrCat("caller ", i));
    clock.AdvanceNanos(kSecond / 10);
  }
  EXPECT_LE(pace.known(), 1025u);
}

}  // namespace
}  // namespace stagecoach
