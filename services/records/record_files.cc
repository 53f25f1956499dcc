#include "services/records/record_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"
#include "services/records/hyperparameters.h"
#include "services/records/record_names.h"

namespace stagecoach {
namespace {

void AddMeasures(const char* split, const std::vector<Measure>& measures,
                 std::vector<Scalar>* scalars) {
  for (const Measure& measure : measures) {
    scalars->push_back({absl::StrCat(split, measure.name), measure.value});
  }
}

}  // namespace

std::vector<Scalar> ScalarsOf(const JobRecord& record, const std::vector<StageAssignment>& stages) {
  if (record.kind == JobRecord::Kind::kEvaluation) {
    std::vector<Scalar> scalars = {{"eval/loss", record.loss}};
    AddMeasures("eval/", record.measures, &scalars);
    return scalars;
  }
  if (record.kind != JobRecord::Kind::kStep) return {};
  std::vector<Scalar> scalars = {{"train/loss", record.loss},
                                 {"train/lr", record.learning_rate},
                                 {"train/grad_norm", record.gradient_norm},
                                 {"perf/tokens_per_second", record.tokens_per_second},
                                 {"perf/step_seconds", record.step_seconds},
                                 {"perf/bubble_ratio", record.bubble}};
  AddMeasures("train/", record.measures, &scalars);
  for (size_t k = 0; k < stages.size(); ++k) {
    for (int i = 0; i < kPhases; ++i) {
      const auto phase = static_cast<Phase>(i);
      if (phase == Phase::kIdle) continue;  // outside of steps
      scalars.push_back(
          {absl::StrCat("time/stage_", k, "/", PhaseName(phase)), stages[k].phases[phase]});
    }
    scalars.push_back({absl::StrCat("memory/stage_", k, "/peak"),
                       static_cast<double>(stages[k].memory_peak.total())});
  }
  return scalars;
}

absl::StatusOr<RecordFiles> RecordFiles::Open(const std::string& folder) {
  ASSIGN_OR_RETURN(const MetricsTail tail, RepairMetrics(JoinPath(folder, kMetricsRecords)));
  return RecordFiles(folder, tail);
}

absl::Status RecordFiles::Write(const std::vector<JobRecord>& records,
                                const std::optional<JobView>& view, double now_unix_seconds) {
  static const std::vector<StageAssignment> kUnknown;
  if (!has_folder_) RETURN_IF_ERROR(PosixFileSystem()->MakeFolders(folder_));
  has_folder_ = true;
  std::string lines, events;
  for (const JobRecord& record : records) {
    if (record.number <= tail_.number) continue;
    const bool replayed = AddToTail(record, &tail_);
    // The view is of one moment: it fits the one step that was the last then.
    const bool known =
        record.kind == JobRecord::Kind::kStep && view.has_value() && view->step == record.step;
    const std::vector<StageAssignment>& stages = known ? view->stages : kUnknown;
    lines += MetricsLine(record, replayed, stages);
    const std::vector<Scalar> scalars =
        replayed ? std::vector<Scalar>() : ScalarsOf(record, stages);
    if (!scalars.empty()) events += ScalarsEvent(record.unix_seconds, record.step, scalars);
  }
  if (!events.empty()) {
    if (!events_.has_value()) {
      ASSIGN_OR_RETURN(events_, EventFile::Create(folder_, now_unix_seconds));
    }
    // In every file anew: TensorBoard keeps the first it reads.
    if (!has_parameters_ && view.has_value() && view->spec != nullptr) {
      events = absl::StrCat(
          SessionStartEvent(view->submitted_unix_seconds, view->id, HyperParametersOf(*view->spec)),
          events);
      has_parameters_ = true;
    }
    // First, so that what metrics.jsonl has is in both: it tells where to go on.
    RETURN_IF_ERROR(events_->Add(events));
  }
  ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(JoinPath(folder_, kMetricsRecords),
                                                     AppendFile::Mode::kOpenOrNew));
  return file.Append(lines);
}

}  // namespace stagecoach
