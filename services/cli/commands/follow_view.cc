#include "services/cli/commands/follow_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

constexpr double kSecondsBetweenGets = 10;

}  // namespace

FollowView::FollowView(const v1::Job& job, OutputFormat format, Console* console,
                       const Clock* clock, std::function<std::optional<v1::Job>()> get_job)
    : format_(format),
      console_(console),
      clock_(clock),
      get_job_(std::move(get_job)),
      progress_(job.total_steps(), job.spec()) {}

FollowView::~FollowView() { console_->EndBar(); }

void FollowView::OnRecord(const v1::WatchJobResponse& record) {
  if (format_ == OutputFormat::kNdjson) {
    const std::string event = ToNdjson(record, replays_.Take(record));
    if (!event.empty()) console_->PrintLine(event);
    if (record.has_state()) ShowState(record.state());
    return;
  }
  if (record.has_step_done()) {
    OnStep(record);
  } else {
    ShowEvent(record);
  }
}

void FollowView::OnStep(const v1::WatchJobResponse& record) {
  progress_.OnStep(record.step(), record.step_done());
  const double now = clock_->MonotonicSeconds();
  if (now >= next_get_seconds_) {
    next_get_seconds_ = now + kSecondsBetweenGets;
    const std::optional<v1::Job> job = get_job_();
    if (job.has_value()) progress_.OnStages(*job);
  }
  if (console_->has_bar()) {
    console_->DrawBar(progress_.Bar(console_->columns()));
  } else {
    ShowLine(progress_.ConsoleLine());
  }
}

// The log of a run is data, unless something else is asked for on standard output or a bar shows
// it.
void FollowView::ShowLine(const std::string& line) {
  if (format_ == OutputFormat::kTable && !console_->has_bar()) {
    console_->PrintLine(line);
  } else {
    console_->Note(line);
  }
}

void FollowView::ShowEvent(const v1::WatchJobResponse& record) {
  if (record.has_evaluation()) {
    ShowLine(
        absl::StrFormat("evaluation step=%d loss=%.4f", record.step(), record.evaluation().loss()) +
        MeasuresText(record.evaluation().measures()));
  } else if (record.has_checkpoint()) {
    const std::string& error = record.checkpoint().error();
    ShowLine(error.empty() ? absl::StrCat("checkpoint step=", record.step())
                           : absl::StrCat("checkpoint step=", record.step(), " failed: ", error));
  } else if (record.has_recovery()) {
    console_->Note(
        absl::StrCat("recovery step=", record.step(), ": ", record.recovery().message()));
  } else if (record.has_state()) {
    ShowState(record.state());
  }
}

// The message too: a job that waits stays in its state while the number of ready stages changes.
void FollowView::ShowState(const v1::StateRecord& state) {
  const std::string& why = state.message();
  const std::string text =
      absl::StrCat("job is ", state.detail(), why.empty() ? "" : absl::StrCat(": ", why));
  if (text == shown_state_) return;
  shown_state_ = text;
  console_->Note(text);
}

void FollowView::OnOutage(const absl::Status& why) {
  console_->Note(absl::StrCat("no answer (", std::string(why.message()), "); trying again"));
}

}  // namespace stagecoach
