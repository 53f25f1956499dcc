#include "services/cli/commands/follow_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

constexpr double kSecondsBetweenGets = 10;
// A log has no line to draw over.
constexpr double kSecondsBetweenLoadingNotes = 10;

}  // namespace

FollowView::FollowView(const v1::Job& job, OutputFormat format, Console* console,
                       const Clock* clock, std::function<std::optional<v1::Job>()> get_job)
    : format_(format),
      console_(console),
      clock_(clock),
      get_job_(std::move(get_job)),
      writes_(job.spec().has_write()),
      write_(job.spec().write()),
      texts_(write_.lines_size()),
      progress_(job.total_steps(), job.spec()),
      states_(console) {}

FollowView::~FollowView() { console_->EndBar(); }

void FollowView::OnRecord(const v1::WatchJobResponse& record) {
  if (std::exchange(loading_bar_, false)) console_->ClearBar();
  if (format_ == OutputFormat::kNdjson) {
    const std::string event = ToNdjson(record, replays_.Take(record), writes_);
    if (!event.empty()) console_->PrintLine(event);
    if (record.has_state()) states_.Show(record.state());
    texts_.Take(record.written(), {});  // counts the whole lines
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
  ShowProgress();
}

void FollowView::ShowProgress() {
  const double now = clock_->MonotonicSeconds();
  if (now >= next_get_seconds_) {
    next_get_seconds_ = now + kSecondsBetweenGets;
    const std::optional<v1::Job> job = get_job_();
    if (job.has_value()) progress_.OnStages(*job);
  }
  if (console_->has_bar()) {
    console_->DrawBar(progress_.Bar(console_->columns()));
  } else if (writes_) {
    console_->Note(progress_.ConsoleLine());
  } else {
    ShowLine(progress_.ConsoleLine());
  }
}

void FollowView::OnWritten(const v1::WatchJobResponse& record) {
  const auto show = [this](const WrittenLine& line) {
    const std::string text = absl::StrCat(
        write_.has_generate() ? write_.lines(static_cast<int>(line.line)) : "", line.text);
    if (format_ == OutputFormat::kTable) {
      console_->PrintLine(text);
    } else {
      console_->Note(text);
    }
  };
  texts_.Take(record.written(), {.on_text = nullptr, .on_line = show});
  if (progress_.OnWritten(record.step(), record.unix_seconds())) ShowProgress();
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
    states_.Show(record.state());
  } else if (record.has_written()) {
    OnWritten(record);
  }
}

void FollowView::OnLoading(const v1::WatchJobResponse& loading) {
  const std::string& text = loading.state().message();
  if (format_ == OutputFormat::kNdjson) console_->PrintLine(LoadingNdjson(loading));
  if (console_->has_bar()) {
    loading_bar_ = true;
    return console_->DrawBar(LoadingBar(text, console_->columns()));
  }
  if (format_ == OutputFormat::kNdjson) return;
  const double now = clock_->MonotonicSeconds();
  if (loading_noted_seconds_.has_value() &&
      now < *loading_noted_seconds_ + kSecondsBetweenLoadingNotes) {
    return;
  }
  loading_noted_seconds_ = now;
  console_->Note(absl::StrCat("job is loading: ", text));
}

void FollowView::OnOutage(const absl::Status& why) {
  console_->Note(absl::StrCat("no answer (", std::string(why.message()), "); trying again"));
}

}  // namespace stagecoach
