#include "stage/backends/device/device_error.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

// Kernels are compiled for sm_80 and newer.
constexpr int kLeastCapability = 80;

std::string Describe(const DeviceApi& api, int code) {
  return absl::StrCat(api.ErrorName(code), ": ", api.ErrorText(code));
}

absl::Status NoDriver(DeviceApi& api, int ordinal, int code) {
  int driver = 0, runtime = 0;
  if (api.DriverVersion(&driver) != device_code::kSuccess) driver = 0;
  if (api.RuntimeVersion(&runtime) != device_code::kSuccess) runtime = 0;
  if (driver == 0) {
    return absl::UnavailableError(absl::StrCat(
        "device cuda:", ordinal, ": no NVIDIA driver on this machine (", api.ErrorName(code),
        "); install the driver, in a container start it with the NVIDIA container toolkit, or use "
        "--device=cpu"));
  }
  return absl::UnavailableError(
      absl::StrCat("device cuda:", ordinal, ": the driver is too old: it supports CUDA ",
                   VersionText(driver), ", this program needs CUDA ", VersionText(runtime), " (",
                   api.ErrorName(code), "); update the NVIDIA driver, or use --device=cpu"));
}

}  // namespace

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<DeviceProperties> FindDevice(DeviceApi& api, int ordinal) {
  int count = 0;
  int code = api.DeviceCount(&count);
  if (code == device_code::kInsufficientDriver) return NoDriver(api, ordinal, code);
  if (code == device_code::kNoDevice || (code == device_code::kSuccess && count == 0)) {
    return absl::UnavailableError(absl::StrCat(
        "device cuda:", ordinal,
        ": no CUDA device: a driver is there, but no card that it may use "
        "(nvidia-smi lists them; CUDA_VISIBLE_DEVICES may hide them); use --device=cpu where there "
        "is none"));
  }
  if (code != device_code::kSuccess) return DeviceError(api, ordinal, code, "counting devices");
  if (ordinal < 0 || ordinal >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("device cuda:", ordinal, ": there ",
                     count == 1 ? "is one card, cuda:0"
                                : absl::StrCat("are ", count, " cards, cuda:0 to cuda:", count - 1),
                     " (CUDA_VISIBLE_DEVICES may hide others)"));
  }
  DeviceProperties properties;
  code = api.Properties(ordinal, &properties);
  if (code != device_code::kSuccess) return DeviceError(api, ordinal, code, "asking for the card");
  if (properties.compute_capability < kLeastCapability) {
    return absl::UnavailableError(
        absl::StrCat("device cuda:", ordinal, " (", properties.name, ") has compute capability ",
                     properties.compute_capability / 10, ".", properties.compute_capability % 10,
                     ", this program needs 8.0 or newer (A100, H100 and what came after)"));
  }
  return properties;
}

absl::Status DeviceError(const DeviceApi& api, int ordinal, int code, const char* what) {
  const std::string where = absl::StrCat("device cuda:", ordinal, ", ", what, ": ");
  if (code == device_code::kOutOfMemory) {
    return absl::ResourceExhaustedError(
        absl::StrCat(where, Describe(api, code),
                     "; other processes may hold the card's memory (nvidia-smi shows them); use "
                     "more stages, smaller micro-batches or rematerialization"));
  }
  return absl::InternalError(
      absl::StrCat(where, Describe(api, code),
                   "; this process cannot use the card any more: restart the stage server, and if "
                   "it happens again look for Xid in the kernel log"));
}

void DeviceFault::Note(int code, const char* what) {
  if (code == device_code::kSuccess) return;
  if (KeptByTrial(absl::StrCat(what, ": ", Describe(*api_, code)))) return;
  Keep(DeviceError(*api_, ordinal_, code, what));
}

void DeviceFault::NoteStatus(const absl::Status& status, const char* what) {
  if (status.ok() || KeptByTrial(absl::StrCat(what, ": ", status.message()))) return;
  Keep(Annotate(status, absl::StrCat("device cuda:", ordinal_, ", ", what)));
}

void DeviceFault::BeginTrial() {
  std::lock_guard<std::mutex> lock(mutex_);
  trying_ = std::this_thread::get_id();
  trial_.clear();
}

std::string DeviceFault::EndTrial() {
  std::lock_guard<std::mutex> lock(mutex_);
  trying_.reset();
  return std::exchange(trial_, "");
}

bool DeviceFault::KeptByTrial(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (trying_ != std::this_thread::get_id()) return false;
  if (trial_.empty()) trial_ = text;
  return true;
}

void DeviceFault::Keep(const absl::Status& error) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool of_the_job = absl::IsResourceExhausted(error) || absl::IsInvalidArgument(error);
  absl::Status& first = of_the_job ? refusal_ : fault_;
  if (!first.ok()) return;
  first = error;
  failed_.store(true, std::memory_order_release);
}

absl::Status DeviceFault::status() const {
  if (ok()) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  return fault_.ok() ? refusal_ : fault_;
}

absl::Status DeviceFault::lasting() const {
  if (ok()) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  return fault_;
}

void DeviceFault::ForgetRefusal() {
  std::lock_guard<std::mutex> lock(mutex_);
  refusal_ = absl::OkStatus();
  failed_.store(!fault_.ok(), std::memory_order_release);
}

}  // namespace stagecoach
