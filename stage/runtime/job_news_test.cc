#include "stage/runtime/job_news.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/testing/manual_clock.h"
#include "base/threads/thread.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

constexpr int64_t kSecondNanos = 1'000'000'000;
constexpr double kTimeoutSeconds = 10;
constexpr auto kTimeoutNanos = static_cast<int64_t>(kTimeoutSeconds) * kSecondNanos;

// A stage that waits: its patience first, whether somebody moved second.
class WaitingStage {
 public:
  explicit WaitingStage(const JobNews* news) : news_(news) {}
  // Until the silence is over; true if somebody moved since then, as far as is known.
  bool SeesMoveAfterSilence(uint64_t moves_before, std::atomic<int>* looks) {
    while (news_->PatienceNanos(kTimeoutSeconds) > kTimeoutNanos) {
      if (++*looks % 1000 == 0) std::this_thread::yield();
    }
    return news_->moves() != moves_before;
  }

 private:
  const JobNews* const news_;
};

// Seen by reading: a stage whose wait fell between the two saw that the coordinator speaks again
// and not yet that somebody may have moved meanwhile, took the silence for standing still, and gave
// up.
TEST(JobNews, WhoeverSeesThatASilenceEndedSeesThatSomebodyMayHaveMoved) {
  // Each silence hands over between two threads. On a busy machine that waits for time slices, so
  // fewer are tried there.
  constexpr int kSilences = 20'000, kEnd = -1;
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  ManualClock clock;
  JobNews news(&clock);
  news.Tell(1, 1.0);
  std::atomic<int> silence{0}, looks{0}, answered{0};
  int missed = 0, tried = 0;
  Thread stage("stage", [&] {
    WaitingStage waiting(&news);
    for (int i = 1;; ++i) {
      while (silence != i && silence != kEnd) std::this_thread::yield();
      if (silence == kEnd) return;
      if (!waiting.SeesMoveAfterSilence(static_cast<uint64_t>(i), &looks)) ++missed;
      answered = i;
    }
  });
  for (int i = 1; i <= kSilences && std::chrono::steady_clock::now() < enough; ++i) {
    EXPECT_EQ(news.moves(), static_cast<uint64_t>(i)) << "each silence counts once";
    if (HasFailure()) break;
    clock.AdvanceNanos(40 * kSecondNanos);
    looks = 0;
    silence = i;
    while (looks < 3) std::this_thread::yield();
    news.Tell(1, 1.0);
    while (answered != i) std::this_thread::yield();
    tried = i;
  }
  silence = kEnd;
  stage.Join();
  EXPECT_EQ(missed, 0) << "of " << tried;
}

TEST(JobNews, TheFirstWordCountsWithItsLease) {
  ManualClock clock;
  JobNews news(&clock);
  EXPECT_EQ(news.PatienceNanos(kTimeoutSeconds), kTimeoutNanos);
  news.Tell(7, 30.0);
  EXPECT_EQ(news.moves(), 1u);
  EXPECT_EQ(news.PatienceNanos(kTimeoutSeconds), 60 * kSecondNanos);
  news.Tell(7, 30.0);
  EXPECT_EQ(news.moves(), 1u) << "nobody moved, and there was no silence";
}

}  // namespace
}  // namespace stagecoach
