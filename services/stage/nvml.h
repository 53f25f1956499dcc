// NvmlCard: the driver's measures of a card: utilization, power, temperature, memory. NVIDIA's
// management library comes with the driver. It is loaded at run time, so building and starting need
// no library.
// Ownership: owns the loaded library and its session; borrows the clock.
// Threads:   thread-safe; reads under a mutex, never on the executor thread.
// Units:     ratio 0 to 1, watts, degrees Celsius, bytes.
// Errors:    Open: UNAVAILABLE without the library, a function of it, or the card.
// See: NVIDIA's NVML API reference, "Device Queries".
#ifndef STAGECOACH_SERVICES_STAGE_NVML_H_
#define STAGECOACH_SERVICES_STAGE_NVML_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"

namespace stagecoach {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// Cards tell different values; unknown ones are absent.
struct DeviceReading {
  std::optional<double> utilization;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> memory_used_bytes, memory_size_bytes;  // by all processes
};

class NvmlCard {
 public:
  // address: of the card on the PCI bus, as from CudaDeviceAddress.
  static absl::StatusOr<std::unique_ptr<NvmlCard>> Open(const std::string& library,
                                                        const std::string& address,
                                                        const Clock* clock);
  NvmlCard(const NvmlCard&) = delete;
  NvmlCard& operator=(const NvmlCard&) = delete;
  ~NvmlCard();

  DeviceReading Read();  // at most once a second from the driver

 private:
  struct State;
  explicit NvmlCard(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_NVML_H_
