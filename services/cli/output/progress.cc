#include "services/cli/output/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plan/measure.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/text.h"
#include "services/cli/output/throughput.h"

namespace stagecoach {
namespace {

// Weight of the newest step in the average that the ETA is made of.
constexpr double kNewest = 0.1;
constexpr int kBarColumns = 24;

}  // namespace

std::string MeasuresText(const google::protobuf::RepeatedPtrField<v1::Measure>& measures) {
  std::string text;
  for (const v1::Measure& measure : measures) {
    if (IsOfAClass(measure.name())) continue;
    absl::StrAppendFormat(&text, " %s=%.4f", measure.name(), measure.value());
  }
  return text;
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

void ProgressState::OnStages(const v1::Job& job) {
  if (TotalSteps(job) > 0) steps_ = TotalSteps(job);
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

std::string ProgressState::ConsoleLine() const {
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

std::string ProgressState::Bar(int columns) const {
  const double share =
      steps_ > 0 ? std::min(1.0, static_cast<double>(step_) / static_cast<double>(steps_)) : 0;
  const int done = static_cast<int>(share * kBarColumns);
  std::string bar(done, '=');
  if (done < kBarColumns) bar += '>';
  bar.resize(kBarColumns, ' ');
  std::string line = absl::StrFormat("[%s] %3.0f%% %d/%d", bar, share * 100, step_, steps_);
  // The most wanted first: what does not fit is left out from the end.
  std::string shares;
  for (const v1::Measure& measure : last_.measures()) {
    if (IsALoss(measure.name())) {
      absl::StrAppendFormat(&shares, "  %s %.3f", measure.name(), measure.value());
    } else {
      absl::StrAppendFormat(&shares, "  %s %.1f%%", measure.name(), measure.value() * 100);
    }
  }
  const Throughput rate = ThroughputOf(spec_, last_.tokens_per_second(), last_.step_seconds());
  const std::string parts[] = {
      absl::StrFormat("  loss %.3f", last_.loss()), shares,
      absl::StrCat("  ETA ", FormatDuration(EtaSeconds())),
      absl::StrCat("  ", FormatCount(rate.per_second), " ", rate.what, "/s"),
      absl::StrFormat("  bubble %.1f%% (ideal %.1f%%)", last_.bubble() * 100,
                      last_.bubble_ideal() * 100)};
  for (const std::string& part : parts) {
    if (step_ == 0 || static_cast<int>(line.size() + part.size()) > columns) break;
    line += part;
  }
  if (static_cast<int>(line.size()) > columns) line.resize(std::max(columns, 0));
  return line;
}

}  // namespace stagecoach
