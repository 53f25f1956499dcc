// RecordFiles: the files of one job's history in one folder: metrics.jsonl and the event files.
// Every record becomes a line; a line once written stays. Steps that a recovery runs again are
// marked "replayed" in metrics.jsonl and left out of the event files: they have the same numbers.
// Ownership: owns its descriptors, but none for waiting jobs, which may be many.
// Threads:   thread-compatible.
// Errors:    canonical codes with path and errno text. After a failed Write discard the object;
//            Open repairs the files and tells where to go on.
// See:       docs/formats.md, "A job's records".
#ifndef STAGECOACH_SERVICES_RECORDS_RECORD_FILES_H_
#define STAGECOACH_SERVICES_RECORDS_RECORD_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/view/job_view.h"
#include "services/records/append_file.h"
#include "services/records/metrics_jsonl.h"
#include "services/records/tfevents.h"

namespace stagecoach {

// A record's values in TensorBoard; empty: none. stages: of the record's step, or empty.
std::vector<Scalar> ScalarsOf(const JobRecord& record, const std::vector<StageAssignment>& stages);

class RecordFiles {
 public:
  // The folder may be missing: the first Write makes it.
  static absl::StatusOr<RecordFiles> Open(const std::string& folder);

  // Records above tail().number, in order. view: the job's present state, for the stages' part of
  // the newest step; may be absent.
  absl::Status Write(const std::vector<JobRecord>& records, const std::optional<JobView>& view,
                     double now_unix_seconds);
  const MetricsTail& tail() const { return tail_; }

 private:
  RecordFiles(std::string folder, const MetricsTail& tail)
      : folder_(std::move(folder)), tail_(tail) {}

  std::string folder_;
  MetricsTail tail_;
  bool has_folder_ = false;          // true after the first Write
  std::optional<EventFile> events_;  // from the first scalar on
  bool has_parameters_ = false;      // events_ has the job's hyperparameters
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_RECORDS_RECORD_FILES_H_
