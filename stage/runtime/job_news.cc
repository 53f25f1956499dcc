#include "stage/runtime/job_news.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace stagecoach {
namespace {

// A coordinator that says nothing for so long is not about to: its disk is given no longer either.
// One that was started anew takes the cells back at once.
constexpr int64_t kSilenceNanos = int64_t{600} * 1'000'000'000;

}  // namespace

void JobNews::Tell(uint64_t number, double lease_seconds) {
  const int64_t now = clock_->MonotonicNanos();
  const bool after_silence = IsSilence(now);  // what moved meanwhile may not be in the number yet
  // The end of a silence is told last: who sees it also sees the move and the lease that go with
  // it.
  if (number_.exchange(number) != number || after_silence) ++moves_;
  lease_nanos_ = static_cast<int64_t>(lease_seconds * 1e9);
  told_nanos_ = now;
}

bool JobNews::IsSilence(int64_t now_nanos) const {
  const int64_t told = told_nanos_;
  return told != kNotTold && now_nanos - told > 2 * lease_nanos_;
}

int64_t JobNews::PatienceNanos(double timeout_seconds) const {
  const bool silence =
      IsSilence(clock_->MonotonicNanos());  // before the lease, which is told first
  const int64_t usual =
      std::max(static_cast<int64_t>(timeout_seconds * 1e9), 2 * lease_nanos_.load());
  return silence ? std::max(usual, kSilenceNanos) : usual;
}

std::string JobNews::Words(int64_t still_nanos) const {
  const int64_t told = told_nanos_, now = clock_->MonotonicNanos();
  if (told == kNotTold) return "the coordinator told nothing of the other stages";
  if (now - told >= still_nanos || IsSilence(now)) {
    return absl::StrFormat("the coordinator was last heard %.1f s ago",
                           static_cast<double>(now - told) * 1e-9);
  }
  return "nor by any other stage, says the coordinator";
}

}  // namespace stagecoach
