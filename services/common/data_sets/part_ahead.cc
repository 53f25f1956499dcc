#include "services/common/data_sets/part_ahead.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace stagecoach {
namespace {

// As threads that compute (stage/runtime/stage_runtime.h): messages come first.
constexpr int kNice = 10;
constexpr std::chrono::seconds kTurn{1};

}  // namespace

void PartAhead::Ask(const Wish& wish) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_ || given_up_ || wishes_.size() >= kMostWishes) return;
  if (!asked_.insert(wish.key.FileName()).second) return;
  wishes_.push_back(wish);
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = Thread("data-ahead", [this] { Run(); });
}

void PartAhead::KeepOnly(const std::set<std::string>& sets) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (sets_ == sets) return;
  sets_ = sets;
  given_up_ = false;
  untidy_ = true;
  std::erase_if(wishes_, [&](const Wish& wish) { return !sets.contains(wish.set); });
  asked_.clear();
  for (const Wish& wish : wishes_) asked_.insert(wish.key.FileName());
  changed_.notify_all();
}

void PartAhead::GiveUp() {
  std::lock_guard<std::mutex> lock(mutex_);
  given_up_ = true;
  wishes_.clear();
  asked_.clear();
}

bool PartAhead::Wanted(const Wish& wish) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !closed_ && !given_up_ && (!sets_.has_value() || sets_->contains(wish.set));
}

void PartAhead::Shutdown() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  thread_.Join();
}

void PartAhead::Run() {
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice));
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_) {
    if (std::exchange(untidy_, false)) {
      lock.unlock();
      work_.tidy();
      lock.lock();
    } else if (!wishes_.empty()) {
      const Wish wish = std::move(wishes_.front());
      wishes_.pop_front();
      lock.unlock();
      work_.fetch(wish);
      lock.lock();
    } else {
      changed_.wait_for(lock, kTurn);
    }
  }
}

}  // namespace stagecoach
