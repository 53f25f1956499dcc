#include "services/cli/client/follow.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {

v1::WatchJobResponse FinishedRecordOf(const v1::Job& job) {
  v1::WatchJobResponse record;
  record.set_step(job.step());
  record.set_unix_seconds(job.finished_unix_seconds());
  v1::FinishedRecord& finished = *record.mutable_finished();
  finished.set_state(job.state());
  finished.set_message(job.message());
  finished.set_loss(job.loss());
  finished.set_weights_digest(job.weights_digest());
  return record;
}

namespace {

class Follower {
 public:
  Follower(JobClient& client, const std::string& id, const FollowOptions& options, RecordSink& sink,
           StopSignal* stop)
      : client_(client), id_(id), options_(options), sink_(sink), stop_(stop) {}

  absl::StatusOr<v1::WatchJobResponse> Run() {
    while (true) {
      const absl::Status status = WatchOnce();
      if (finished_.has_value()) return std::move(*finished_);
      if (stop_->requested()) return stop_->reason();
      if (!status.ok() && !IsPassing(status)) return status;
      RETURN_IF_ERROR(AskCoordinator(status));
      if (finished_.has_value()) return std::move(*finished_);
      if (stop_->requested()) return stop_->reason();
      RETURN_IF_ERROR(WaitBeforeRetry());
    }
  }

 private:
  absl::Status WatchOnce() {
    const auto on_record = [this](const v1::WatchJobResponse& record) {
      outage_start_.reset();
      backoff_seconds_ = options_.first_backoff_seconds;
      if (record.number() <= after_) {
        if (record.has_state()) sink_.OnLoading(record);
        return;
      }
      after_ = record.number();
      sink_.OnRecord(record);
      if (record.has_finished()) finished_ = record;
    };
    return client_.Watch(id_, after_, on_record, stop_);
  }

  // A stream that ends says little: its own deadline, a quiet job, a coordinator that is gone. One
  // short call tells them apart.
  absl::Status AskCoordinator(const absl::Status& watch_status) {
    const absl::StatusOr<v1::Job> job = client_.Get(id_);
    if (!job.ok()) {
      if (!IsPassing(job.status())) return job.status();
      return NoteOutage(watch_status.ok() ? job.status() : watch_status);
    }
    outage_start_.reset();
    // Only after a stream that ended in order: a broken one may have left records to be read.
    if (!watch_status.ok() || !IsTerminal(job->state())) return absl::OkStatus();
    finished_ = FinishedRecordOf(*job);
    sink_.OnRecord(*finished_);
    return absl::OkStatus();
  }

  absl::Status NoteOutage(const absl::Status& why) {
    const double now = options_.clock->MonotonicSeconds();
    if (!outage_start_.has_value()) {
      outage_start_ = now;
      sink_.OnOutage(why);
    }
    if (now - *outage_start_ <= options_.patience_seconds) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("job ", id_, ": no answer for ",
                                               options_.patience_seconds,
                                               " s, given up: ", why.ToString()));
  }

  absl::Status WaitBeforeRetry() {
    if (stop_->WaitFor(std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(backoff_seconds_)))) {
      return stop_->reason();
    }
    backoff_seconds_ = std::min(backoff_seconds_ * 2, options_.longest_backoff_seconds);
    return absl::OkStatus();
  }

  JobClient& client_;
  const std::string& id_;
  const FollowOptions& options_;
  RecordSink& sink_;
  StopSignal* const stop_;
  uint64_t after_ = options_.after;
  double backoff_seconds_ = options_.first_backoff_seconds;
  std::optional<double> outage_start_;
  std::optional<v1::WatchJobResponse> finished_;
};

}  // namespace

absl::StatusOr<v1::WatchJobResponse> FollowJob(JobClient& client, const std::string& id,
                                               const FollowOptions& options, RecordSink& sink,
                                               StopSignal* stop) {
  return Follower(client, id, options, sink, stop).Run();
}

bool IsPassing(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

bool IsTerminal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

}  // namespace stagecoach
