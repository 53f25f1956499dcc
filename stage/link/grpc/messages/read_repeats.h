// ReadRepeats: the repeats that one end asks for if messages arrive damaged. It asks in rounds, and
// ignores frames until the peer has answered the newest round. After three rounds without progress
// further damage ends the link: the fault is permanent, and another connection may be better.
// Threads:   thread-compatible; LinkCore's mutex guards it.
// See:       docs/formats.md, "Link frames".
#ifndef STAGECOACH_STAGE_LINK_GRPC_MESSAGES_READ_REPEATS_H_
#define STAGECOACH_STAGE_LINK_GRPC_MESSAGES_READ_REPEATS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace stagecoach {

// Counts events without progress between them.
class RepeatLimit {
 public:
  explicit RepeatLimit(int most) : most_(most) {}
  // progress: a number that grows with progress. False: one event too many.
  [[nodiscard]] bool Allow(uint64_t progress) {
    if (progress > progress_) count_ = 0;
    progress_ = std::max(progress, progress_);
    return ++count_ <= most_;
  }

 private:
  const int most_;
  int count_ = 0;
  uint64_t progress_ = 0;
};

class ReadRepeats {
 public:
  static constexpr int kMostRounds = 3;
  // A larger damaged message was no hello, credit or repeat.
  static constexpr size_t kMostControlBytes = 64;

  // A message of `bytes` bytes was damaged. False: the link ends.
  [[nodiscard]] bool OnDamage(size_t bytes, uint64_t progress) {
    // A damaged frame that would be ignored anyway is no loss. There may be several before the
    // peer's answer.
    if (!is_answered_ && bytes > kMostControlBytes) return true;
    if (!limit_.Allow(progress)) return false;
    ++round_;
    is_answered_ = false;
    is_due_ = true;
    return true;
  }
  // The peer asked for a repeat: perhaps our own repeat was damaged.
  void SayAgain() { is_due_ = is_due_ || !is_answered_; }
  // A credit of that round was read.
  absl::Status OnAnswer(uint32_t round) {
    if (round > round_) {
      return absl::InvalidArgumentError(
          absl::StrCat("peer answers repeat ", round, " of ", round_));
    }
    if (round == round_) {
      is_answered_ = true;
      is_due_ = false;
      ignored_bytes_ = 0;
    }
    return absl::OkStatus();
  }
  bool ignores_frames() const { return !is_answered_; }
  // Adds ignored bytes of frames. Returns the number since the last answer.
  uint64_t Ignore(uint64_t bytes) { return ignored_bytes_ += bytes; }
  uint32_t round() const { return round_; }
  // Whether a repeat is to be written now; then false until the next one is due.
  [[nodiscard]] bool TakeDue() {
    const bool due = is_due_;
    is_due_ = false;
    return due;
  }

 private:
  RepeatLimit limit_{kMostRounds};
  uint32_t round_ = 0;
  bool is_answered_ = true, is_due_ = false;
  uint64_t ignored_bytes_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MESSAGES_READ_REPEATS_H_
