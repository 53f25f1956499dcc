// AvailableMemory: what this machine, or the container that the process is in, could give without taking from anybody.
// Threads: any.  Errors: none; a large number where nobody says.
#ifndef STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_
#define STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stagecoach {

int64_t AvailableMemory();
// Of the texts of /proc/meminfo and of a control group's limit and use; empty ones say nothing.
int64_t AvailableMemory(const std::string& meminfo, const std::string& limit,
                        const std::string& use);

// RESOURCE_EXHAUSTED where so many bytes would be too many of those that are available.
absl::Status CheckMemory(int64_t bytes, int64_t available);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_
