// What goes wrong with cards, in words: which card, which operation, what to do.
// Threads:   functions are pure but for asking the api; DeviceFault is thread-safe.
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

// Properties of the card, once it is certain that there is a driver that is new enough, a card, and
// this one among them. UNAVAILABLE without driver, card or a new enough driver, naming both
// versions; INVALID_ARGUMENT for an ordinal that is not there, naming those that are.
absl::StatusOr<DeviceProperties> FindDevice(DeviceApi& api, int ordinal);

// "13.0" of 13000.
std::string VersionText(int version);

// `what` met `code` on cuda:`ordinal`: RESOURCE_EXHAUSTED for memory, else INTERNAL, with the
// remedy.
absl::Status DeviceError(const DeviceApi& api, int ordinal, int code, const char* what);

// The errors of a card, kept until a caller asks: the first fault, and the first refusal. After a
// fault a card's runtime answers every call with the same error. So the first fault matters, and it
// stays. A refusal, of memory above all, belongs to the job that asked for too much. It is
// forgotten with the job's cell.
class DeviceFault {
 public:
  DeviceFault(std::shared_ptr<DeviceApi> api, int ordinal)
      : api_(std::move(api)), ordinal_(ordinal) {}

  // Success is nothing, out of memory a refusal, the rest a fault. `what` is the operation.
  void Note(int code, const char* what);
  // With device and operation before it; RESOURCE_EXHAUSTED and INVALID_ARGUMENT are refusals.
  void NoteStatus(const absl::Status& status, const char* what);
  // Neither; what goes on after either computes nothing that anybody reads.
  bool ok() const { return !failed_.load(std::memory_order_acquire); }
  absl::Status status() const;   // the fault, or else the refusal
  absl::Status lasting() const;  // the fault alone: no other job helps, only a new process
  void ForgetRefusal();

  // Between the two, what this thread notes is no fault: it tries something that may fail. EndTrial
  // gives the first of it in words, empty if there was nothing.
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
  std::string trial_;  // what was noted first
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_ERROR_H_
