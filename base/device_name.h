// The names of CUDA devices on the command line: "cuda" is "cuda:0".
#ifndef STAGECOACH_BASE_DEVICE_NAME_H_
#define STAGECOACH_BASE_DEVICE_NAME_H_

#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

// True for "cuda" and for every text that begins with "cuda:", well formed or not.
bool IsCudaDevice(const std::string& device);

// The ordinal of "cuda" or "cuda:N", 0 <= N < 1024. INVALID_ARGUMENT otherwise.
absl::StatusOr<int> ParseCudaDevice(const std::string& device);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_DEVICE_NAME_H_
