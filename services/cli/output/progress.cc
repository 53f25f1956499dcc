#include "services/cli/output/progress.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/threads/work_words.h"
#include "base/utf8.h"
#include "plan/measure.h"
#include "services/cli/output/text.h"
#include "services/cli/output/throughput.h"

namespace stagecoach {
namespace {

// Weight of the newest step in the average that the ETA is made of.
constexpr double kNewest = 0.1;
constexpr size_t kBarColumns = 24;
// A shorter bar shows nothing.
constexpr size_t kFewestBarColumns = 4;

// "[====>   ] ", as wide as fits beside `taken` columns of text; empty where there is no room.
std::string BarText(double share, size_t room, size_t taken) {
  const size_t frame = 3;
  if (room < taken + frame + kFewestBarColumns) return "";
  const size_t columns = std::min(kBarColumns, room - taken - frame);
  const auto done = static_cast<size_t>(share * static_cast<double>(columns));
  std::string bar(done, '=');
  if (done < columns) bar += '>';
  bar.resize(columns, ' ');
  return absl::StrCat("[", bar, "] ");
}

}  // namespace

std::string MeasureText(const v1::Measure& measure) {
  return absl::StrFormat("%.*f", IsAScore(measure.name()) ? 2 : 4, measure.value());
}

std::string MeasuresText(const google::protobuf::RepeatedPtrField<v1::Measure>& measures) {
  std::string text;
  for (const v1::Measure& measure : measures) {
    if (IsOfAClass(measure.name())) continue;
    absl::StrAppend(&text, " ", measure.name(), "=", MeasureText(measure));
  }
  return text;
}

std::string LoadingBar(const std::string& text, int columns) {
  const auto room = static_cast<size_t>(std::max(columns, 0));
  std::string line = ShownText(text);
  if (const std::optional<int> percent = PercentIn(text); percent.has_value()) {
    line = BarText(*percent / 100.0, room, line.size()) + line;
  }
  if (line.size() <= room) return line;
  line.resize(room);
  line.resize(line.size() - UnfinishedBytes(line));
  return line;
}

void ProgressState::OnStep(uint64_t step, const v1::StepRecord& record) {
  step_ = step;
  last_ = record;
  const double seconds = record.step_seconds();
  if (!(seconds > 0)) return;
  average_step_seconds_ = average_step_seconds_ == 0
                              ? seconds
                              : average_step_seconds_ + kNewest * (seconds - average_step_seconds_);
}

bool ProgressState::OnWritten(uint64_t step, double unix_seconds) {
  const uint64_t steps = step > step_ ? step - step_ : 0;
  if (steps > 0) {
    v1::StepRecord record;
    record.set_step_seconds(written_unix_seconds_ == 0 ? 0
                                                       : (unix_seconds - written_unix_seconds_) /
                                                             static_cast<double>(steps));
    OnStep(step, record);
  }
  if (steps > 0 || written_unix_seconds_ == 0) written_unix_seconds_ = unix_seconds;
  return steps > 0;
}

void ProgressState::OnStages(const v1::Job& job) {
  if (job.total_steps() > 0) steps_ = job.total_steps();
  for (const v1::JobStage& stage : job.stages()) {
    const v1::MemoryBytes& peak = stage.memory_peak();
    memory_peak_bytes_ = std::max(memory_peak_bytes_, peak.parameters() + peak.gradients() +
                                                          peak.optimizer() + peak.activations());
  }
}

double ProgressState::EtaSeconds() const {
  if (average_step_seconds_ == 0) return -1;
  return average_step_seconds_ *
         static_cast<double>(std::max<int64_t>(0, steps_ - static_cast<int64_t>(step_)));
}

std::string ProgressState::WritingLine() const {
  const int64_t lines = spec_.write().lines_size();
  const int64_t done = static_cast<int64_t>(step_) * spec_.training().batch_size();
  return absl::StrFormat("step=%d/%d lines=%d/%d step_s=%.3f mem_peak_gib=%.2f eta=%s", step_,
                         steps_, std::min(done, lines), lines, last_.step_seconds(),
                         static_cast<double>(memory_peak_bytes_) / (1 << 30),
                         FormatDuration(EtaSeconds()));
}

std::string ProgressState::ConsoleLine() const {
  if (spec_.has_write()) return WritingLine();
  const Throughput rate = ThroughputOf(spec_, last_.tokens_per_second(), last_.step_seconds());
  return absl::StrFormat(
             "step=%d/%d examples=%d loss=%.4f lr=%.1e grad_norm=%.3f step_s=%.3f %s_s=%.0f "
             "bubble=%.3f ideal=%.3f mem_peak_gib=%.2f skipped=%d nonfinite=%d eta=%s",
             step_, steps_, static_cast<int64_t>(step_) * spec_.training().batch_size(),
             last_.loss(), last_.learning_rate(), last_.gradient_norm(), last_.step_seconds(),
             rate.what, rate.per_second, last_.bubble(), last_.bubble_ideal(),
             static_cast<double>(memory_peak_bytes_) / (1 << 30), last_.skipped() ? 1 : 0,
             last_.nonfinite_steps(), FormatDuration(EtaSeconds())) +
         MeasuresText(last_.measures());
}

std::string ProgressState::SharesText() const {
  std::string shares;
  for (const v1::Measure& measure : last_.measures()) {
    if (IsALoss(measure.name())) {
      absl::StrAppendFormat(&shares, "  %s %.3f", measure.name(), measure.value());
    } else {
      absl::StrAppendFormat(&shares, "  %s %.1f%%", measure.name(), measure.value() * 100);
    }
  }
  return shares;
}

std::string ProgressState::Bar(int columns) const {
  const auto room = static_cast<size_t>(std::max(columns, 0));
  const double share =
      steps_ > 0 ? std::min(1.0, static_cast<double>(step_) / static_cast<double>(steps_)) : 0;
  std::string counts = absl::StrFormat("%3.0f%% %d/%d", share * 100, step_, steps_);
  if (step_ == 0) {
    const std::string line = BarText(share, room, counts.size()) + counts;
    return line.substr(0, room);
  }
  const std::string eta = FormatDuration(EtaSeconds());
  if (spec_.has_write()) {
    const std::string left = absl::StrCat("  ETA ", eta);
    return absl::StrCat(BarText(share, room, counts.size() + left.size()), counts, left)
        .substr(0, room);
  }
  const std::string loss = absl::StrFormat("loss %.3f", last_.loss());
  // Loss and time left stay the longest; the counts go before them.
  const size_t kept = loss.size() + std::string_view("  ETA ").size() + eta.size();
  if (counts.size() + 2 + kept > room) counts = absl::StrFormat("%.0f%%", share * 100);
  if (counts.size() + 2 + kept > room) counts.clear();
  if (kept > room) return absl::StrFormat("%.3f %s", last_.loss(), eta).substr(0, room);
  if (counts.empty()) return absl::StrCat(loss, "  ETA ", eta);
  const size_t taken = counts.size() + 2 + kept;
  const std::string bar = BarText(share, room, taken);
  size_t left = room - taken - bar.size();
  const Throughput rate = ThroughputOf(spec_, last_.tokens_per_second(), last_.step_seconds());
  // The most wanted first: what does not fit is left out from the end.
  std::string parts[] = {SharesText(),
                         absl::StrCat("  ", FormatCount(rate.per_second), " ", rate.what, "/s"),
                         absl::StrFormat("  bubble %.1f%% (ideal %.1f%%)", last_.bubble() * 100,
                                         last_.bubble_ideal() * 100)};
  bool fits = true;
  for (std::string& part : parts) {
    fits = fits && part.size() <= left;
    if (!fits) part.clear();
    left -= part.size();
  }
  return absl::StrCat(bar, counts, "  ", loss, parts[0], "  ETA ", eta, parts[1], parts[2]);
}

}  // namespace stagecoach
