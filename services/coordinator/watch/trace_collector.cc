#include "services/coordinator/watch/trace_collector.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace stagecoach {

// Every stage writes its own part of the response; who comes last hands it on.
struct TraceCollector::Collection {
  uint32_t steps = 0;
  v1::GetTraceResponse response;
  std::atomic<size_t> missing{0};
  std::function<void(v1::GetTraceResponse)> done;

  void PartDone() {
    if (missing.fetch_sub(1) != 1) return;
    if (steps > 0) KeepLast();
    done(std::move(response));
  }

  // The job runs on while its stages are asked: who answered earlier has an older step in front.
  void KeepLast() {
    std::set<uint64_t> seen;
    for (const v1::StageTrace& stage : response.stages()) {
      for (const v1::TraceSpan& span : stage.spans()) seen.insert(span.step());
    }
    if (seen.size() <= steps) return;
    const uint64_t first = *std::prev(seen.end(), steps);
    for (v1::StageTrace& stage : *response.mutable_stages()) {
      auto& spans = *stage.mutable_spans();
      const auto kept = std::stable_partition(
          spans.pointer_begin(), spans.pointer_end(),
          [first](const v1::TraceSpan* span) { return span->step() >= first; });
      spans.DeleteSubrange(static_cast<int>(kept - spans.pointer_begin()),
                           static_cast<int>(spans.pointer_end() - kept));
    }
  }
};

// One stage's questions, one after the other. Lives in the callbacks of the call under way.
class TraceCollector::StageCollection : public std::enable_shared_from_this<StageCollection> {
 public:
  StageCollection(const TraceCollector& collector, std::shared_ptr<Collection> whole,
                  StageTarget target, v1::GetStageTraceRequest request, v1::StageTrace* part)
      : stages_(collector.stages_),
        clock_(collector.clock_),
        whole_(std::move(whole)),
        target_(std::move(target)),
        request_(std::move(request)),
        part_(part),
        deadline_seconds_(clock_->MonotonicSeconds() + kDeadlineSeconds) {}

  void CompareClocks(int left) {
    if (left == 0) return FetchSpans();
    const Sent sent = Now();
    stages_->GetStatus(target_.peer, std::min(kExchangeSeconds, SecondsLeft()),
                       [self = shared_from_this(), sent,
                        left](const absl::StatusOr<v1::GetStatusResponse>& status) {
                         if (status.ok()) self->TakeExchange(sent, status->now_unix_nanos());
                         self->CompareClocks(status.ok() ? left - 1 : 0);
                       });
  }

 private:
  struct Sent {
    int64_t monotonic_nanos, unix_nanos;
  };

  Sent Now() const { return {clock_->MonotonicNanos(), clock_->UnixNanos()}; }
  double SecondsLeft() const {
    return std::max(0.05, deadline_seconds_ - clock_->MonotonicSeconds());
  }

  void TakeExchange(const Sent& sent, int64_t stage_unix_nanos) {
    const int64_t round_trip = clock_->MonotonicNanos() - sent.monotonic_nanos;
    if (stage_unix_nanos == 0 || round_trip >= shortest_nanos_) return;
    shortest_nanos_ = round_trip;
    part_->set_clock_offset_nanos(stage_unix_nanos - (sent.unix_nanos + round_trip / 2));
    part_->set_clock_error_nanos((round_trip + 1) / 2);
  }

  void FetchSpans() {
    const Sent sent = Now();
    stages_->GetTrace(
        target_.peer, request_, SecondsLeft(),
        [self = shared_from_this(), sent](absl::StatusOr<v1::GetStageTraceResponse> answer) {
          self->TakeSpans(sent, std::move(answer));
        });
  }

  void TakeSpans(const Sent& sent, absl::StatusOr<v1::GetStageTraceResponse> answer) {
    if (answer.ok()) {
      part_->mutable_spans()->Swap(answer->mutable_trace()->mutable_spans());
      part_->set_now_unix_nanos(answer->trace().now_unix_nanos());
      TakeExchange(sent, answer->trace().now_unix_nanos());
    } else {
      part_->set_error(WhyMissing(target_.peer.name, answer.status()));
    }
    whole_->PartDone();
  }

  StageObserver* const stages_;
  const Clock* const clock_;
  const std::shared_ptr<Collection> whole_;
  const StageTarget target_;
  const v1::GetStageTraceRequest request_;
  v1::StageTrace* const part_;  // in whole_
  const double deadline_seconds_;
  int64_t shortest_nanos_ = std::numeric_limits<int64_t>::max();
};

void TraceCollector::Collect(const std::string& job_id, uint32_t steps,
                             const std::vector<StageTarget>& targets,
                             std::function<void(v1::GetTraceResponse)> done) {
  if (targets.empty()) return done(v1::GetTraceResponse());
  auto whole = std::make_shared<Collection>();
  whole->steps = steps;
  whole->missing = targets.size();
  whole->done = std::move(done);
  for (const StageTarget& target : targets) {  // all parts exist before the first answer
    v1::StageTrace& part = *whole->response.add_stages();
    part.set_stage(target.stage);
    part.set_name(target.peer.name);
  }
  v1::GetStageTraceRequest request;
  request.set_job_id(job_id);
  request.set_steps(steps);
  // No answer may move the response on while parts of it are still being handed out.
  std::vector<std::shared_ptr<StageCollection>> stages;
  for (size_t i = 0; i < targets.size(); ++i) {
    stages.push_back(std::make_shared<StageCollection>(
        *this, whole, targets[i], request, whole->response.mutable_stages(static_cast<int>(i))));
  }
  for (const auto& stage : stages) stage->CompareClocks(kExchanges);
}

}  // namespace stagecoach
