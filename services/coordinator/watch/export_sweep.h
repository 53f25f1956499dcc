// ExportSweep: exports that clients asked for go a day after somebody asked for them last. Another
// call makes them anew. A grant to read one ends before that (ObjectGrants::kSeconds). The weights
// that a job exported at its end stay.
// Threads: thread-safe. Sweep waits for files; while an export is being written it does nothing.
// Units:   seconds since 1970.
// Errors:  Touch: the system's, with the path. A folder that Sweep cannot remove is logged, and stays
//          for the next one.
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_EXPORT_SWEEP_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_EXPORT_SWEEP_H_

#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace stagecoach {

class ExportSweep {
 public:
  static constexpr double kKeepSeconds = 24 * 3600;

  explicit ExportSweep(std::string folder) : folder_(std::move(folder)) {}

  // No export goes while the caller has it.
  std::unique_lock<std::mutex> Hold() { return std::unique_lock<std::mutex>(mutex_); }
  // Under the hold: somebody asks for this export now.
  static absl::Status Touch(const std::string& path);

  void Sweep(double now_seconds);

 private:
  const std::string folder_;  // of all exports
  std::mutex mutex_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_EXPORT_SWEEP_H_
