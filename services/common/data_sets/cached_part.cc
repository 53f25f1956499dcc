#include "services/common/data_sets/cached_part.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/clock.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostRunBlocks = (int64_t{4} << 20) / kCacheBlockBytes;
constexpr int64_t kTouchNanos = 60'000'000'000;
// A reader waits for another one's block. That one gives up sooner (StoreClient).
constexpr double kOthersSeconds = 600;
constexpr std::chrono::milliseconds kWaitTurn{50};

}  // namespace

absl::Status CachedPart::WaitWhileBusy(int64_t block, std::unique_lock<std::mutex>& lock) {
  const State& state = states_[static_cast<size_t>(block)];
  StallTimer still(SystemClock::Get());
  uint64_t seen = arrivals_.count();
  while (state == State::kBusy) {
    changed_.wait_for(lock, kWaitTurn);
    const uint64_t now = arrivals_.count();
    if (now != seen) TickProgress();
    seen = now;
    if (static_cast<double>(still.StillNanos(now)) > kOthersSeconds * 1e9) {
      return absl::UnavailableError(absl::StrCat("another reader has waited ", kOthersSeconds,
                                                 " s for the same bytes, and nothing came"));
    }
  }
  return absl::OkStatus();
}

CachedPart::Run CachedPart::Claim(int64_t first, int64_t all_to, bool ahead) {
  Run run{first, first};
  while (run.end < std::ssize(states_) && run.end - first < kMostRunBlocks) {
    State& state = states_[static_cast<size_t>(run.end)];
    if (state != State::kUnknown) break;
    // A block that is here already is checked when somebody needs it.
    if (run.end > all_to && (!ahead || file_->Has(run.end))) break;
    state = State::kBusy;
    ++run.end;
  }
  return run;
}

void CachedPart::Release(const Run& run, bool good) {
  std::lock_guard<std::mutex> lock(mutex_);
  const State state = good ? State::kGood : State::kUnknown;
  std::fill(states_.begin() + run.first, states_.begin() + run.end, state);
  changed_.notify_all();
}

absl::Status CachedPart::Need(int64_t offset, int64_t bytes, Fetch fetch) {
  if (bytes <= 0) return absl::OkStatus();
  const int64_t first = offset / kCacheBlockBytes, last = (offset + bytes - 1) / kCacheBlockBytes;
  std::unique_lock<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(lost_);
  const bool sequential = first == next_ || first + 1 == next_;
  next_ = last + 1;
  TouchNowAndThen();
  for (int64_t block = first; block <= last;) {
    RETURN_IF_ERROR(WaitWhileBusy(block, lock));
    if (states_[static_cast<size_t>(block)] == State::kGood) {
      ++block;
      continue;
    }
    RETURN_IF_ERROR(lost_);
    const Run run = Claim(block, last, sequential);
    lock.unlock();
    const absl::Status made = MakeGood(run, fetch);
    Release(run, made.ok());
    RETURN_IF_ERROR(made);
    lock.lock();
  }
  return absl::OkStatus();
}

absl::Status CachedPart::MakeGood(const Run& run, Fetch fetch) {
  int64_t missing = run.first;  // nothing from here to `block` is good
  for (int64_t block = run.first; block < run.end; ++block) {
    if (!file_->IsGood(block)) continue;
    RETURN_IF_ERROR(FetchBlocks({missing, block}, fetch));
    missing = block + 1;
    TickProgress();
  }
  return FetchBlocks({missing, run.end}, fetch);
}

absl::Status CachedPart::FetchBlocks(const Run& run, Fetch fetch) {
  if (run.first == run.end) return absl::OkStatus();
  const int64_t offset = run.first * kCacheBlockBytes;
  const int64_t end = std::min(run.end * kCacheBlockBytes, file_->key().bytes);
  std::vector<std::byte> bytes(static_cast<size_t>(end - offset));
  RETURN_IF_ERROR(fetch(offset, bytes));
  return Store(run.first, bytes);
}

absl::Status CachedPart::Store(int64_t first, std::span<const std::byte> bytes) {
  const auto count = static_cast<int64_t>(bytes.size());
  absl::Status stored = file_->Store(first, bytes);
  while (absl::IsResourceExhausted(stored) && room_.Free(count)) {
    stored = file_->Store(first, bytes);
  }
  if (absl::IsResourceExhausted(stored)) {
    return Annotate(stored, absl::StrCat("no room for ", count, " bytes of the data set"));
  }
  RETURN_IF_ERROR(stored);
  room_.Added(count);
  return absl::OkStatus();
}

void CachedPart::TouchNowAndThen() {
  const int64_t now = SystemClock::Get()->MonotonicNanos();
  if (touched_nanos_ != 0 && now - touched_nanos_ < kTouchNanos) return;
  touched_nanos_ = now;
  file_->Touch();
}

int64_t CachedPart::NextMissing() {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto is_here = [this](int64_t block) {
    return states_[static_cast<size_t>(block)] == State::kGood || file_->Has(block);
  };
  while (missing_ < file_->blocks() && is_here(missing_)) ++missing_;
  int64_t bytes = 0;
  const int64_t end = std::min(missing_ + kMostRunBlocks, file_->blocks());
  for (int64_t block = missing_; block < end && !is_here(block); ++block) {
    bytes += file_->BlockBytes(block);
  }
  return bytes;
}

absl::Status CachedPart::FetchMissing(Fetch fetch) {
  std::unique_lock<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(lost_);
  if (missing_ == file_->blocks()) return absl::OkStatus();
  RETURN_IF_ERROR(WaitWhileBusy(missing_, lock));
  const Run run = Claim(missing_, missing_, /*ahead=*/true);
  lock.unlock();
  const absl::Status made = MakeGood(run, fetch);
  Release(run, made.ok());
  return made;
}

absl::Status CachedPart::CheckWhole(Fetch fetch, absl::FunctionRef<bool()> wanted) {
  // Each answer of the bucket had the object's ETag.
  if (file_->key().linked || file_->checked()) return absl::OkStatus();
  Sha256 digest;
  std::vector<std::byte> piece;
  for (int64_t at = 0; at < file_->key().bytes; at += std::ssize(piece)) {
    if (!wanted()) return absl::OkStatus();
    piece.resize(static_cast<size_t>(
        std::min<int64_t>(kMostRunBlocks * kCacheBlockBytes, file_->key().bytes - at)));
    RETURN_IF_ERROR(Need(at, std::ssize(piece), fetch));
    RETURN_IF_ERROR(file_->Read(at, piece));
    digest.Update(piece);
  }
  if (digest.Hex() == file_->key().sha256) {
    file_->SetChecked();
    return absl::OkStatus();
  }
  file_->Drop();
  std::lock_guard<std::mutex> lock(mutex_);
  lost_ = absl::DataLossError(absl::StrCat(
      "part ", file_->key().sha256,
      " of the data set has other bytes than those of its name, in the store or in this "
      "stage's cache, which has dropped them: submit the job again; if that fails too, "
      "upload the data with `stagecoach submit --data-again`, or `stagecoach data put "
      "--again`"));
  return lost_;
}

}  // namespace stagecoach
