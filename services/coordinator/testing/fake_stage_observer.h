// FakeStageObserver: stages for tests of observers. Answers at once, or holds calls until the test
// answers.
#ifndef STAGECOACH_SERVICES_COORDINATOR_TESTING_FAKE_STAGE_OBSERVER_H_
#define STAGECOACH_SERVICES_COORDINATOR_TESTING_FAKE_STAGE_OBSERVER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/testing/manual_clock.h"
#include "services/coordinator/stages/stage_observer.h"

namespace stagecoach {

class FakeStageObserver final : public StageObserver {
 public:
  struct Stage {
    absl::Status error;                               // answer of every call, if not OK
    int64_t clock_offset = 0;                         // to the test's clock
    std::vector<std::pair<int64_t, int64_t>> delays;  // nanoseconds there and back, call by call
    std::vector<v1::TraceSpan> spans;
    std::vector<v1::LogLine> lines;  // numbered from 1
    std::vector<uint64_t> asked_after;
    double none_until_unix_seconds = 0;  // in the last request
    size_t calls = 0;
  };

  explicit FakeStageObserver(ManualClock* clock) : clock_(clock) {}

  void GetStatus(const StagePeer& peer, double,
                 std::function<void(absl::StatusOr<v1::GetStatusResponse>)> done) override {
    Stage& stage = stages[peer.address];
    if (!stage.error.ok()) return done(stage.error);
    v1::GetStatusResponse response;
    response.set_now_unix_nanos(Exchange(stage));
    done(response);
  }

  void GetTrace(const StagePeer& peer, const v1::GetStageTraceRequest& request, double,
                std::function<void(absl::StatusOr<v1::GetStageTraceResponse>)> done) override {
    Stage& stage = stages[peer.address];
    trace_requests.push_back(request);
    if (!stage.error.ok()) return done(stage.error);
    v1::GetStageTraceResponse response;
    for (const v1::TraceSpan& span : stage.spans) *response.mutable_trace()->add_spans() = span;
    response.mutable_trace()->set_now_unix_nanos(Exchange(stage));
    Answer([done, response] { done(response); });
  }

  void GetLogs(const StagePeer& peer, const v1::GetStageLogsRequest& request, double,
               std::function<void(absl::StatusOr<v1::GetStageLogsResponse>)> done) override {
    Stage& stage = stages[peer.address];
    stage.asked_after.push_back(request.after());
    stage.none_until_unix_seconds = request.none_until_unix_seconds();
    if (!stage.error.ok()) return done(stage.error);
    v1::GetStageLogsResponse response;
    response.set_newest(stage.lines.size());
    for (const v1::LogLine& line : stage.lines) {
      if (line.number() > request.after()) *response.add_lines() = line;
    }
    Answer([done, response] { done(response); });
  }

  std::map<std::string, Stage> stages;  // by address
  std::vector<v1::GetStageTraceRequest> trace_requests;
  bool hold = false;  // traces and logs wait in `held`
  std::vector<std::function<void()>> held;

 private:
  // The exchange takes time there and back; returns the stage's clock in between.
  int64_t Exchange(Stage& stage) {
    const size_t call = stage.calls++;
    const auto [there, back] =
        call < stage.delays.size() ? stage.delays[call] : std::pair<int64_t, int64_t>(0, 0);
    clock_->AdvanceNanos(there);
    const int64_t now = clock_->UnixNanos() + stage.clock_offset;
    clock_->AdvanceNanos(back);
    return now;
  }
  void Answer(std::function<void()> answer) {
    if (hold) {
      held.push_back(std::move(answer));
    } else {
      answer();
    }
  }

  ManualClock* const clock_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_TESTING_FAKE_STAGE_OBSERVER_H_
