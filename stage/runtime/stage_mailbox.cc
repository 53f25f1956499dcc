#include "stage/runtime/stage_mailbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {

namespace {

bool IsNewWork(const StageRequest& request) {
  const auto* run = std::get_if<RunRequest>(&request);
  if (run != nullptr) return run->command.work != WorkKind::kNone;
  return std::holds_alternative<LoadRequest>(request) ||
         std::holds_alternative<ProfileRequest>(request);
}

// Null of a profile, which belongs to no incarnation.
struct FenceOf {
  const Fence* operator()(const ReleaseRequest& release) const { return &release.fence; }
  const Fence* operator()(const ProfileRequest&) const { return nullptr; }
  const Fence* operator()(const auto& other) const { return &other.command.fence; }
};

}  // namespace

void Refuse(StageRequest& request, const absl::Status& status) {
  std::visit([&status](auto& refused) { refused.done(status); }, request);
}

bool Supersedes(const Fence& fence, const Fence& loaded) {
  if (fence.job != loaded.job) return fence.term >= loaded.term;
  return CompareIncarnation(fence, loaded) > 0;
}

absl::Status StageMailbox::Post(StageRequest&& request) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return absl::CancelledError("the stage is shutting down");
    if (const Fence* const fence = std::visit(FenceOf(), request); fence != nullptr) {
      RETURN_IF_ERROR(CheckTermLocked(*fence));
    }
    if (draining_ && IsNewWork(request)) {
      return absl::UnavailableError("draining: the stage is shutting down; use another one");
    }
    if (requests_.size() >= capacity_) {
      // Not RESOURCE_EXHAUSTED: a job that does not fit answers that at load, and is over.
      return absl::UnavailableError(
          absl::StrCat("the stage has ", capacity_, " commands waiting; try again later"));
    }
    if (const auto* load = std::get_if<LoadRequest>(&request); load != nullptr) {
      newest_term_ = std::max(newest_term_, load->command.fence.term);
    }
    requests_.push_back(std::move(request));
    woken_ = true;
  }
  changed_.notify_one();
  return absl::OkStatus();
}

absl::Status StageMailbox::Abort(const Fence& fence, const absl::Status& reason) {
  CHECK(!reason.ok()) << "an abort has a reason";
  {
    std::lock_guard<std::mutex> lock(mutex_);
    RETURN_IF_ERROR(CheckTermLocked(fence));
    const bool late = abort_.has_value() && abort_->fence.job == fence.job &&
                      CompareIncarnation(fence, abort_->fence) <= 0;
    if (late) return absl::OkStatus();  // the first reason stays
    newest_term_ = std::max(newest_term_, fence.term);
    abort_ = AbortNotice{fence, reason};
    abort_unseen_ = true;
    woken_ = true;
  }
  changed_.notify_one();
  return absl::OkStatus();
}

void StageMailbox::KnowTerm(uint64_t term) {
  std::lock_guard<std::mutex> lock(mutex_);
  known_term_ = std::max(known_term_, term);
}

absl::Status StageMailbox::CheckTermLocked(const Fence& fence) const {
  if (known_term_ == 0 || fence.term <= known_term_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("term ", fence.term, " is above ", known_term_,
                                             ", the coordinator's by its own word to this stage; "
                                             "not obeyed until it says so too"));
}

void StageMailbox::Wake() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void StageMailbox::Close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    woken_ = true;
  }
  changed_.notify_one();
}

void StageMailbox::StartDraining() {
  std::lock_guard<std::mutex> lock(mutex_);
  draining_ = true;
}

bool StageMailbox::draining() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return draining_;
}

std::optional<uint64_t> StageMailbox::WaitAtRest(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  // Something may be queued while the executor is still on its way out of Next.
  const auto rests = [this] { return at_rest_ && !abort_unseen_ && requests_.empty(); };
  rest_changed_.wait_until(lock, deadline, [&] { return drain_ended_ || rests(); });
  if (drain_ended_ || !rests()) return std::nullopt;
  return returns_;
}

bool StageMailbox::WaitStirred(uint64_t returns, Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  rest_changed_.wait_until(lock, deadline, [&] { return drain_ended_ || returns_ > returns; });
  return !drain_ended_ && returns_ > returns;
}

void StageMailbox::EndDraining() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    drain_ended_ = true;
  }
  rest_changed_.notify_all();
}

uint64_t StageMailbox::newest_term() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return newest_term_;
}

bool StageMailbox::closed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

bool StageMailbox::HasWork() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return HasWorkLocked();
}

std::optional<StageRequest> StageMailbox::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!HasWorkLocked()) {
    at_rest_ = true;
    rest_changed_.notify_all();
    changed_.wait(lock, [this] { return HasWorkLocked(); });
    at_rest_ = false;
  }
  ++returns_;
  rest_changed_.notify_all();
  if (closed_ || abort_unseen_) {
    abort_unseen_ = false;
    return std::nullopt;
  }
  std::optional<StageRequest> request(std::move(requests_.front()));
  requests_.pop_front();
  return request;
}

void StageMailbox::WaitForChange(std::chrono::nanoseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return woken_; });
  woken_ = false;
}

absl::Status StageMailbox::Interruption(const Fence& loaded) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return absl::CancelledError("the stage is shutting down");
  RETURN_IF_ERROR(AbortOfLocked(loaded));
  for (const StageRequest& request : requests_) {
    const auto* load = std::get_if<LoadRequest>(&request);
    if (load != nullptr && Supersedes(load->command.fence, loaded)) {
      return absl::AbortedError(
          absl::StrCat("replaced by a load of ", load->command.fence.ToString()));
    }
    const auto* release = std::get_if<ReleaseRequest>(&request);
    if (release != nullptr && release->fence.job == loaded.job &&
        CompareIncarnation(release->fence, loaded) >= 0) {
      return absl::CancelledError("the cell is being released");
    }
  }
  return absl::OkStatus();
}

absl::Status StageMailbox::AbortOf(const Fence& fence) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return AbortOfLocked(fence);
}

absl::Status StageMailbox::AbortOfLocked(const Fence& fence) const {
  if (!abort_.has_value() || abort_->fence.job != fence.job) return absl::OkStatus();
  if (CompareIncarnation(abort_->fence, fence) < 0) return absl::OkStatus();
  return Annotate(abort_->reason, "aborted");
}

std::vector<StageRequest> StageMailbox::Drain() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<StageRequest> rest(std::make_move_iterator(requests_.begin()),
                                 std::make_move_iterator(requests_.end()));
  requests_.clear();
  return rest;
}

}  // namespace stagecoach
