// TfEvents: the bytes of TensorBoard's event files: a version record, then scalars.
// Threads: pure functions; EventFile is thread-compatible.
// Units:   wall times in Unix seconds; values as float, which is what TensorBoard reads.
// Errors:  EventFile: as AppendFile.
// See:     docs/formats.md, "A job's records".
#ifndef STAGECOACH_SERVICES_RECORDS_TFEVENTS_H_
#define STAGECOACH_SERVICES_RECORDS_TFEVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/records/append_file.h"

namespace stagecoach {

struct Scalar {
  std::string tag;
  double value = 0;
};

// The first record of every event file.
std::string VersionEvent(double unix_seconds);
std::string ScalarsEvent(double unix_seconds, uint64_t step, const std::vector<Scalar>& scalars);

// EventFile: a new file events.out.tfevents.<unix seconds>.<host> in a folder. TensorBoard reads
// all of a folder in the order of their names, so a process that continues starts another one.
class EventFile {
 public:
  static absl::StatusOr<EventFile> Create(const std::string& folder, double unix_seconds);
  absl::Status Add(const std::string& events);  // one or more of ScalarsEvent
  const std::string& path() const { return file_.path(); }

 private:
  explicit EventFile(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_RECORDS_TFEVENTS_H_
