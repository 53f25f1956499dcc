#include "services/stage/nvml.h"

#include <dlfcn.h>

#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

// NVML's C interface as its reference documents it; its header does not come with the driver.
using NvmlReturn = int;  // 0: success
using NvmlDevice = struct NvmlDeviceOpaque*;
constexpr int kGpuSensor = 0;  // NVML_TEMPERATURE_GPU

struct NvmlUtilization {
  unsigned int gpu, memory;  // percent
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};

struct Library {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*by_address)(const char*, NvmlDevice*) = nullptr;
  NvmlReturn (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  NvmlReturn (*power)(NvmlDevice, unsigned int*) = nullptr;  // milliwatts
  NvmlReturn (*temperature)(NvmlDevice, int, unsigned int*) = nullptr;
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
};

// The name of a function that is missing, or null.
const char* FindFunctions(void* handle, Library* library) {
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(handle, name));
    if (*function == nullptr && missing == nullptr) missing = name;
  };
  find("nvmlInit_v2", &library->init);
  find("nvmlShutdown", &library->shutdown);
  find("nvmlErrorString", &library->error_string);
  find("nvmlDeviceGetHandleByPciBusId_v2", &library->by_address);
  find("nvmlDeviceGetUtilizationRates", &library->utilization);
  find("nvmlDeviceGetPowerUsage", &library->power);
  find("nvmlDeviceGetTemperature", &library->temperature);
  find("nvmlDeviceGetMemoryInfo", &library->memory);
  return missing;
}

}  // namespace

struct NvmlCard::State {
  ~State() {
    if (begun) library.shutdown();
    if (handle != nullptr) dlclose(handle);
  }

  DeviceReading Ask() const;

  void* handle = nullptr;
  Library library;
  bool begun = false;
  NvmlDevice device = nullptr;
  const Clock* clock = nullptr;

  std::mutex mutex;  // guards what follows
  std::optional<int64_t> read_nanos;
  DeviceReading reading;
};

DeviceReading NvmlCard::State::Ask() const {
  DeviceReading found;
  NvmlUtilization utilization{};
  if (library.utilization(device, &utilization) == 0) found.utilization = utilization.gpu / 100.0;
  unsigned int value = 0;
  if (library.power(device, &value) == 0) found.power_watts = value / 1000.0;
  if (library.temperature(device, kGpuSensor, &value) == 0) found.temperature_celsius = value;
  NvmlMemory memory{};
  if (library.memory(device, &memory) == 0) {
    found.memory_used_bytes = static_cast<double>(memory.used);
    found.memory_size_bytes = static_cast<double>(memory.total);
  }
  return found;
}

absl::StatusOr<std::unique_ptr<NvmlCard>> NvmlCard::Open(const std::string& library,
                                                         const std::string& address,
                                                         const Clock* clock) {
  auto state = std::make_unique<State>();
  state->clock = clock;
  state->handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (state->handle == nullptr) {
    const char* const reason = dlerror();
    return absl::UnavailableError(
        absl::StrCat(library, " cannot be loaded: ", reason == nullptr ? "no reason" : reason));
  }
  if (const char* missing = FindFunctions(state->handle, &state->library)) {
    return absl::UnavailableError(absl::StrCat(library, " has no function ", missing));
  }
  NvmlReturn code = state->library.init();
  state->begun = code == 0;
  if (code == 0) code = state->library.by_address(address.c_str(), &state->device);
  if (code != 0) {
    return absl::UnavailableError(
        absl::StrCat(library, ", card ", address, ": ", state->library.error_string(code)));
  }
  return std::unique_ptr<NvmlCard>(new NvmlCard(std::move(state)));
}

NvmlCard::NvmlCard(std::unique_ptr<State> state) : state_(std::move(state)) {}
NvmlCard::~NvmlCard() = default;

DeviceReading NvmlCard::Read() {
  constexpr int64_t kSecond = 1'000'000'000;
  std::lock_guard<std::mutex> lock(state_->mutex);
  const int64_t now = state_->clock->MonotonicNanos();
  if (!state_->read_nanos.has_value() || now - *state_->read_nanos >= kSecond) {
    state_->reading = state_->Ask();
    state_->read_nanos = now;
  }
  return state_->reading;
}

}  // namespace stagecoach
