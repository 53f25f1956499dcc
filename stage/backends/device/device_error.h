// Errors of cards as texts: the card, the operation, the remedy.
// Threads:   functions are pure except for calls of the api; DeviceFault is thread-safe.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_ERROR_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_ERROR_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/backends/device/device_api.h"

namespace stagecoach {

// Properties of the card. UNAVAILABLE: no driver, no card, or too old a driver (with both
// versions). INVALID_ARGUMENT: no card of this ordinal; the text has those that exist.
absl::StatusOr<DeviceProperties> FindDevice(DeviceApi& api, int ordinal);

// "13.0" of 13000.
std::string VersionText(int version);

// The error of operation `what` with `code` on cuda:`ordinal`, with the remedy: RESOURCE_EXHAUSTED
// for memory, else INTERNAL.
absl::Status DeviceError(const DeviceApi& api, int ordinal, int code, const char* what);

// The errors of a card, kept until a caller asks: the first fault, and the first refusal. After a
// fault a card's runtime answers every call with the same error. So the first fault matters, and it
// stays. A refusal, of memory above all, belongs to the job that asked for too much. It is
// forgotten with the job's cell.
class DeviceFault {
 public:
  DeviceFault(std::shared_ptr<DeviceApi> api, int ordinal)
      : api_(std::move(api)), ordinal_(ordinal) {}

  // Success is ignored, "out of memory" is a refusal, others are faults. `what` is the operation.
  void Note(int code, const char* what);
  // Puts device and operation in front. RESOURCE_EXHAUSTED and INVALID_ARGUMENT are refusals.
  void NoteStatus(const absl::Status& status, const char* what);
  // Neither fault nor refusal. After either, nobody reads the results of further work.
  bool ok() const { return !failed_.load(std::memory_order_acquire); }
  absl::Status status() const;   // the fault, or else the refusal
  absl::Status lasting() const;  // the fault alone: no other job helps, only a new process
  void ForgetRefusal();

  // For an attempt that may fail: between the two, errors of this thread are not kept. EndTrial
  // returns the first one's text, or empty.
  void BeginTrial();
  std::string EndTrial();

 private:
  bool KeptByTrial(const std::string& text);
  void Keep(const absl::Status& error);

  const std::shared_ptr<DeviceApi> api_;
  const int ordinal_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // guards the rest
  absl::Status fault_, refusal_;
  std::optional<std::thread::id> trying_;
  std::string trial_;  // first error of the trial
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_ERROR_H_
