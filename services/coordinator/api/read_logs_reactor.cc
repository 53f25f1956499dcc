#include "services/coordinator/api/read_logs_reactor.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/caller_error.h"
#include "services/common/grpc/grpc_status.h"

namespace stagecoach {
namespace {

std::atomic<int> readers{0};

LogQuery QueryOf(const v1::ReadLogsRequest& request) {
  LogQuery query{request.job_id(), std::nullopt};
  if (request.has_stage()) query.stage = request.stage();
  return query;
}

}  // namespace

ReadLogsReactor::ReadLogsReactor(const Parts& parts, const CallersJobs& jobs,
                                 const v1::ReadLogsRequest& request)
    : parts_(parts),
      query_(QueryOf(request)),
      follow_(request.follow()),
      own_only_(jobs.caller().own_only),
      reader_(std::make_shared<LogReader>(parts.own, parts.stages, request.job_id())),
      tail_(request.tail()) {}

ReadLogsReactor::~ReadLogsReactor() { --readers; }

ReadLogsReactor* ReadLogsReactor::Start(const Parts& parts, const CallersJobs& jobs,
                                        const v1::ReadLogsRequest& request) {
  const bool too_many = ++readers > kMostReaders;
  std::shared_ptr<ReadLogsReactor> reactor(new ReadLogsReactor(parts, jobs, request));
  reactor->self_ = reactor;
  if (too_many) {
    reactor->End(absl::ResourceExhaustedError(
        absl::StrCat(kMostReaders, " log readers are there already; try again later")));
  } else if (request.job_id().empty() && jobs.caller().own_only) {
    reactor->End(ForCaller(absl::PermissionDeniedError(
        "job_id: a user reads the lines of the jobs that it submitted; name one, or ask an "
        "operator")));
  } else if (request.job_id().empty()) {
    reactor->Poll();
  } else {
    jobs.Check(request.job_id(), [weak = reactor->weak_from_this()](const absl::Status& may) {
      const std::shared_ptr<ReadLogsReactor> self = weak.lock();
      if (self == nullptr) return;
      if (may.ok()) return self->Poll();
      self->End(may);
    });
  }
  return reactor.get();
}

void ReadLogsReactor::Poll() {
  FindLogSources(*parts_.manager, query_,
                 [weak = weak_from_this()](absl::StatusOr<LogSources> sources) {
                   if (auto reactor = weak.lock()) reactor->OnSources(std::move(sources));
                 });
}

void ReadLogsReactor::OnSources(absl::StatusOr<LogSources> sources) {
  if (!sources.ok()) return End(sources.status());
  uint32_t tail = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    last_poll_ = !follow_ || sources->job_ended;
    tail = std::exchange(tail_, 0);  // the lines that come later are all wanted
  }
  reader_->Poll({.targets = sources->stages,
                 .own = sources->coordinator,
                 .tail = tail,
                 .ended_unix_seconds = sources->ended_unix_seconds},
                [weak = weak_from_this()](v1::ReadLogsResponse response) {
                  if (auto reactor = weak.lock()) reactor->OnLines(std::move(response));
                });
}

void ReadLogsReactor::OnLines(v1::ReadLogsResponse response) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    polling_ = false;
    v1::ReadLogsResponse message;
    message.mutable_unreachable()->Swap(response.mutable_unreachable());
    for (v1::LogLine& line : *response.mutable_lines()) {
      if (own_only_ && line.job_id().empty()) continue;
      *message.add_lines() = std::move(line);
      if (message.lines_size() == kLinesPerMessage) {
        queue_.push_back(std::exchange(message, v1::ReadLogsResponse()));
      }
    }
    if (message.lines_size() + message.unreachable_size() > 0) {
      queue_.push_back(std::move(message));
    }
    if (last_poll_ && !ended_.has_value()) ended_ = absl::OkStatus();
  }
  Proceed();
}

void ReadLogsReactor::End(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    polling_ = false;
    if (!ended_.has_value()) ended_ = status;
  }
  Proceed();
}

void ReadLogsReactor::OnWriteDone(bool ok) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    write_in_flight_ = false;
    if (!ok) {
      queue_.clear();
      ended_ = absl::CancelledError("the reader is gone");
    }
  }
  Proceed();
}

void ReadLogsReactor::OnCancel() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.clear();
    ended_ = absl::CancelledError("the reader is gone");
  }
  Proceed();
}

void ReadLogsReactor::Proceed() {
  enum { kNothing, kWrite, kWait, kFinish } action = kNothing;
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
    } else if (!polling_) {
      polling_ = true;
      action = kWait;
    }
  }
  switch (action) {
    case kWrite:
      StartWrite(&writing_);
      break;
    case kWait:
      SetTimer();
      break;
    case kFinish:
      Finish(ToApiGrpc(status));
      break;
    case kNothing:
      break;
  }
}

void ReadLogsReactor::SetTimer() {
  const auto when = std::chrono::system_clock::now() +
                    std::chrono::milliseconds(static_cast<int64_t>(1000 * kPollSeconds));
  timer_.Set(when, [weak = weak_from_this()](bool ok) {
    const auto reactor = weak.lock();
    if (ok && reactor != nullptr) reactor->Poll();
  });
}

void ReadLogsReactor::OnDone() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
  }
  std::shared_ptr<ReadLogsReactor> last = std::move(self_);
}

}  // namespace stagecoach
