#include "services/coordinator/watch/job_log.h"

#include "absl/strings/str_cat.h"
#include "services/common/observe/log.h"

namespace stagecoach {
namespace {

std::string WithReason(const std::string& text, const std::string& reason) {
  return reason.empty() || reason == text ? text : absl::StrCat(text, ": ", reason);
}

// As it happened, with the number of the record that tells users less.
std::string MessageOf(const JobRecord& record) {
  if (record.details.empty()) return record.message;
  return absl::StrCat(record.details, " (record ", record.number, ")");
}

}  // namespace

void LogRecord(const std::string& job, const JobRecord& record) {
  const uint64_t step = record.step;
  switch (record.kind) {
    case JobRecord::Kind::kState:
      LogJob(spdlog::level::info, job, step, "{}",
             WithReason(JobPhaseName(record.phase), MessageOf(record)));
      break;
    case JobRecord::Kind::kStep:
      LogJob(spdlog::level::debug, job, step, "step done, loss {:.6g}, {:.3f} s{}", record.loss,
             record.step_seconds, record.skipped ? ", not finite: skipped" : "");
      break;
    case JobRecord::Kind::kEvaluation:
      LogJob(spdlog::level::info, job, step, "evaluated, loss {:.6g}", record.loss);
      break;
    case JobRecord::Kind::kCheckpoint:
      if (record.message.empty()) {
        LogJob(spdlog::level::info, job, step, "checkpoint committed");
      } else {
        LogJob(spdlog::level::err, job, step, "checkpoint failed: {}", MessageOf(record));
      }
      break;
    case JobRecord::Kind::kRecovery:
      LogJob(spdlog::level::warn, job, step, "recovering: {}", MessageOf(record));
      break;
    case JobRecord::Kind::kFinished:
      LogJob(record.phase == JobPhase::kFailed ? spdlog::level::err : spdlog::level::info, job,
             step, "{}", WithReason(JobPhaseName(record.phase), MessageOf(record)));
      break;
    case JobRecord::Kind::kWritten:  // the texts are for the job's watchers
      LogJob(spdlog::level::debug, job, step, "wrote, {} pieces of texts, {:.3f} s",
             record.written.size(), record.step_seconds);
      break;
  }
}

}  // namespace stagecoach
