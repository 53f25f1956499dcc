// AheadReader: a file whose reads are requests over a long way. Where reads follow each other it
// reads 8 MiB at once.
// Ownership: owns what `read` holds.
// Threads:   any; one read at a time.
// Errors:    DATA_LOSS: a read behind the file's end; others as `read`.
#ifndef STAGECOACH_SERVICES_COMMON_STORE_AHEAD_READER_H_
#define STAGECOACH_SERVICES_COMMON_STORE_AHEAD_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/files/file_system.h"

namespace stagecoach {

// `name` is for errors.
std::unique_ptr<ReadableFile> ReadAhead(
    std::string name, int64_t size,
    std::function<absl::Status(int64_t offset, std::span<std::byte> target)> read);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_STORE_AHEAD_READER_H_
