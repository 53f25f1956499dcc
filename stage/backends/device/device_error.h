// What goes wrong with cards, in words: which card, which operation, what to do.
// Threads:   functions are pure but for asking the api; DeviceFault is thread-safe.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_ERROR_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_ERROR_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

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

// The first error of a card, kept. A card's runtime answers every call with the same error once one
// has met it, so what came first is what matters.
class DeviceFault {
 public:
  DeviceFault(std::shared_ptr<DeviceApi> api, int ordinal)
      : api_(std::move(api)), ordinal_(ordinal) {}

  void Note(int code, const char* what);  // success is no error
  void NoteStatus(const absl::Status& status);
  bool ok() const { return !failed_.load(std::memory_order_acquire); }
  absl::Status status() const;

 private:
  const std::shared_ptr<DeviceApi> api_;
  const int ordinal_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // guards first_
  absl::Status first_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_ERROR_H_
