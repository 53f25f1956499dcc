#include "services/coordinator/api/watch_reactor.h"

#include <utility>

#include "services/common/grpc/grpc_status.h"
#include "services/coordinator/convert/convert_job.h"

namespace stagecoach {

WatchReactor* WatchReactor::Start(JobManager* manager, const std::string& id, uint64_t after) {
  std::shared_ptr<WatchReactor> reactor(new WatchReactor(manager, id, after));
  reactor->self_ = reactor;
  reactor->Subscribe();
  return reactor.get();
}

void WatchReactor::Subscribe() {
  std::weak_ptr<WatchReactor> weak = self_;
  uint64_t after = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    after = last_number_;
  }
  manager_->Watch(
      id_, after,
      [weak](const JobRecord& record) {
        std::shared_ptr<WatchReactor> reactor = weak.lock();
        return reactor != nullptr && reactor->OnRecord(record);
      },
      [weak](const absl::Status& status) {
        if (std::shared_ptr<WatchReactor> reactor = weak.lock()) reactor->OnEnded(status);
      });
}

bool WatchReactor::OnRecord(const JobRecord& record) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return false;
    if (record.number <= last_number_) return true;
    if (queue_.size() >= kQueuedRecords) {
      paused_ = true;
      return false;
    }
    last_number_ = record.number;
    queue_.push_back(ToProto(record));
  }
  Proceed();
  return true;
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
  {
    std::lock_guard<std::mutex> lock(mutex_);
    write_in_flight_ = false;
    if (!ok) {  // the client is gone
      queue_.clear();
      paused_ = false;
      ended_ = absl::CancelledError("the watcher is gone");
    }
  }
  Proceed();
}

void WatchReactor::OnCancel() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.clear();
    paused_ = false;
    ended_ = absl::CancelledError("the watcher is gone");
  }
  Proceed();
}

void WatchReactor::Proceed() {
  enum { kNothing, kWrite, kResubscribe, kFinish } action = kNothing;
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (write_in_flight_ || finished_) return;
    if (!queue_.empty()) {
      writing_ = std::move(queue_.front());
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
