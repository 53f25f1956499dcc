#include "base/threads/progress.h"

#include "base/files/hash.h"
#include "base/testing/manual_clock.h"
#include "base/threads/thread.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

TEST(Progress, AThreadCountsForItsOwnInnermostScope) {
  TickProgress();  // for nobody
  ProgressCounter outer, inner, other;
  const ProgressScope scope(&outer);
  TickProgress();
  {
    const ProgressScope nested(&inner);
    TickProgress();
    TickProgress();
  }
  TickProgress();
  Thread thread("other", [&other] {
    TickProgress();  // of no scope on this thread
    const ProgressScope of_thread(&other);
    TickProgress();
  });
  thread.Join();
  EXPECT_EQ(outer.count(), 2u);
  EXPECT_EQ(inner.count(), 2u);
  EXPECT_EQ(other.count(), 1u);
}

TEST(Progress, AStallIsCountedFromTheLastChange) {
  ManualClock clock;
  StallTimer timer(&clock);
  clock.AdvanceNanos(20);
  EXPECT_EQ(timer.StillNanos(0), 20);
  clock.AdvanceNanos(5);
  EXPECT_EQ(timer.StillNanos(7), 0);
  clock.AdvanceNanos(30);
  EXPECT_EQ(timer.StillNanos(7), 30);
  EXPECT_EQ(timer.StillNanos(3), 0) << "a number that falls has changed as well";
}

TEST(Progress, ADigestOfManyBytesShowsThatItGetsOn) {
  ProgressCounter counter;
  const ProgressScope scope(&counter);
  const std::vector<std::byte> bytes(3 * kProgressPieceBytes + 1);
  Sha256 whole;
  whole.Update(bytes);
  EXPECT_EQ(counter.count(), 4u);
  Sha256 halves;
  const std::span<const std::byte> all(bytes);
  halves.Update(all.first(bytes.size() / 2));
  halves.Update(all.subspan(bytes.size() / 2));
  EXPECT_EQ(whole.Hex(), halves.Hex());
}

}  // namespace
}  // namespace stagecoach
