// AvailableMemory: what this machine, or the container that the process is in, could give without taking from anybody.
// Threads: any.  Errors: none; a large number where nobody says.
#ifndef STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_
#define STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stagecoach {

int64_t AvailableMemory();
// Of the texts of /proc/meminfo and of a control group's limit, use and statistics; empty ones say nothing. What the group
// has of files in memory goes when memory is asked for.
int64_t AvailableMemory(const std::string& meminfo, const std::string& limit,
                        const std::string& use, const std::string& statistics);
// Below /sys/fs/cgroup, of the text of /proc/self/cgroup: where the process's memory is counted, in version 2 of control
// groups or in version 1; empty: nowhere.
std::string MemoryGroup(const std::string& groups);

// So much is written to between two looks at what is available: others take from it, too, perhaps for the same snapshot.
inline constexpr int64_t kLookBytes = int64_t{64} << 20;

// RESOURCE_EXHAUSTED where so many bytes would be too many of those that are available.
absl::Status CheckMemory(int64_t bytes, int64_t available);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_
