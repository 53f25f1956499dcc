// MetricsJsonl: metrics.jsonl, a job's history with one JSON object a line. Keys are those of
// `stagecoach watch -o ndjson` with `number` and `unix_seconds` in front; keys are only appended.
// Threads: pure functions, but for the file that RepairMetrics reads and cuts.
// Errors:  RepairMetrics: canonical codes with path and errno text. A missing file is an empty one.
// See:     docs/formats.md, "A job's records".
#ifndef STAGECOACH_SERVICES_RECORDS_METRICS_JSONL_H_
#define STAGECOACH_SERVICES_RECORDS_METRICS_JSONL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/view/job_view.h"

namespace stagecoach {

// The record's line with its line end. stages: of the record's step; empty: unknown.
std::string MetricsLine(const JobRecord& record, bool replayed,
                        const std::vector<StageAssignment>& stages);

// The present content of a file.
struct MetricsTail {
  uint64_t number = 0;  // of the last record
  uint64_t furthest_step = 0, furthest_evaluation = 0;
  bool finished = false;  // it has the job's end
};

// Cuts off the bytes that a crash left behind the last whole line.
absl::StatusOr<MetricsTail> RepairMetrics(const std::string& path);

// Adds the record as one more line; true if its step, or its evaluation, was in the file before.
bool AddToTail(const JobRecord& record, MetricsTail* tail);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_RECORDS_METRICS_JSONL_H_
