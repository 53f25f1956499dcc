#include "services/coordinator/api/watch_reactor.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/job/view/record_page.h"
#include "services/common/grpc/grpc_status.h"
#include "services/coordinator/convert/convert_job.h"

namespace stagecoach {

namespace {

std::atomic<int> watchers{0};

}  // namespace

WatchReactor::WatchReactor(JobManager* manager, const std::string& id, uint64_t after)
    : manager_(manager), id_(id), last_number_(after) {}

WatchReactor::~WatchReactor() { --watchers; }

WatchReactor* WatchReactor::Start(JobManager* manager, const CallersJobs& jobs,
                                  const std::string& id, uint64_t after) {
  const bool too_many = ++watchers > kMostWatchers;
  std::shared_ptr<WatchReactor> reactor(new WatchReactor(manager, id, after));
  reactor->self_ = reactor;
  if (too_many) {
    reactor->OnEnded(absl::ResourceExhaustedError(
        absl::StrCat(kMostWatchers, " watches of jobs are open already; try again later")));
  } else {
    jobs.Check(id, [weak = std::weak_ptr<WatchReactor>(reactor)](const absl::Status& may) {
      const std::shared_ptr<WatchReactor> self = weak.lock();
      if (self == nullptr) return;
      if (may.ok()) return self->Subscribe();
      self->OnEnded(may);
    });
  }
  return reactor.get();
}

void WatchReactor::Subscribe() {
  std::weak_ptr<WatchReactor> weak = weak_from_this();
  uint64_t after = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    after = last_number_;
  }
  const uint64_t watch = manager_->Watch(
      id_, after,
      [weak](const JobRecord& record) {
        std::shared_ptr<WatchReactor> reactor = weak.lock();
        return reactor != nullptr && reactor->OnRecord(record);
      },
      [weak](const absl::Status& status) {
        if (std::shared_ptr<WatchReactor> reactor = weak.lock()) reactor->OnEnded(status);
      },
      [weak](const JobRecord& shown) {
        if (std::shared_ptr<WatchReactor> reactor = weak.lock()) reactor->OnShown(shown);
      });
  bool gone = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    watch_ = std::max(watch_, watch);  // it may have been taken again already, by another thread
    gone = gone_;
  }
  if (gone) manager_->Unwatch(watch);
}

void WatchReactor::Leave() {
  uint64_t watch = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.clear();
    queued_text_bytes_ = 0;
    paused_ = false;
    gone_ = true;
    ended_ = absl::CancelledError("the watcher is gone");
    watch = std::exchange(watch_, 0);
  }
  if (watch != 0) manager_->Unwatch(watch);
}

bool WatchReactor::OnRecord(const JobRecord& record) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || gone_) return false;
    if (record.number <= last_number_) return true;
    if (queue_.size() >= kQueuedRecords || queued_text_bytes_ >= kPageTextBytes) {
      paused_ = true;
      return false;
    }
    last_number_ = record.number;
    queue_.push_back({ToProto(record), TextBytes(record)});
    queued_text_bytes_ += queue_.back().text_bytes;
  }
  Proceed();
  return true;
}

void WatchReactor::OnShown(const JobRecord& shown) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || gone_ || paused_ || ended_.has_value() || !queue_.empty()) return;
    queue_.push_back({ToProto(shown)});
    queue_.back().record.set_number(last_number_);
  }
  Proceed();
}

void WatchReactor::OnEnded(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (paused_) return;
    ended_ = status;
  }
  Proceed();
}

void WatchReactor::OnWriteDone(bool ok) {
  if (!ok) Leave();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    write_in_flight_ = false;
  }
  Proceed();
}

void WatchReactor::OnCancel() {
  Leave();
  Proceed();
}

void WatchReactor::Proceed() {
  enum { kNothing, kWrite, kResubscribe, kFinish } action = kNothing;
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (write_in_flight_ || finished_) return;
    if (!queue_.empty()) {
      writing_ = std::move(queue_.front().record);
      queued_text_bytes_ -= queue_.front().text_bytes;
      queue_.pop_front();
      write_in_flight_ = true;
      action = kWrite;
    } else if (ended_.has_value()) {
      finished_ = true;
      status = *ended_;
      action = kFinish;
    } else if (paused_) {
      paused_ = false;
      action = kResubscribe;
    }
  }
  switch (action) {
    case kWrite:
      StartWrite(&writing_);
      break;
    case kFinish:
      Finish(ToApiGrpc(status));
      break;
    case kResubscribe:
      Subscribe();
      break;
    case kNothing:
      break;
  }
}

void WatchReactor::OnDone() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
  }
  std::shared_ptr<WatchReactor> last = std::move(self_);
}

}  // namespace stagecoach
