// Logging set-up: spdlog to stderr, as text or as one JSON object a line.
#ifndef STAGECOACH_SERVICES_COMMON_LOG_H_
#define STAGECOACH_SERVICES_COMMON_LOG_H_

#include <string>

#include "absl/status/status.h"

namespace stagecoach {

// program: "stage", "coordinator"; format: "text" or "json" (INVALID_ARGUMENT otherwise).
absl::Status SetUpLogging(const std::string& program, const std::string& format, bool verbose);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_LOG_H_
