// AvailableMemory: memory that this machine, or the process's container, has available, in bytes.
// Threads: any.  Errors: none; INT64_MAX if no file has it.
#ifndef STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_
#define STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stagecoach {

int64_t AvailableMemory();
// The same from the texts of /proc/meminfo and of a control group's limit, use and statistics. An
// empty text is ignored. A group's file cache counts as available.
int64_t AvailableMemory(const std::string& meminfo, const std::string& limit,
                        const std::string& use, const std::string& statistics);
// The control group (path below /sys/fs/cgroup) that counts the process's memory, from the text of
// /proc/self/cgroup. Version 1 or 2. Empty: none.
std::string MemoryGroup(const std::string& groups);

// Bytes written between two checks of the available memory, as other processes use it too.
inline constexpr int64_t kLookBytes = int64_t{64} << 20;

// RESOURCE_EXHAUSTED unless at least twice `bytes` are available.
absl::Status CheckMemory(int64_t bytes, int64_t available);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_AVAILABLE_MEMORY_H_
