// FileHead: the first bytes of a file that a user names, to find its kind (base/files/file_kind.h).
// Threads: any.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_FILE_HEAD_H_
#define STAGECOACH_SERVICES_CLI_SPEC_FILE_HEAD_H_

#include <cstddef>
#include <optional>
#include <string>

#include "base/files/file_kind.h"

namespace stagecoach {

// At most `most` bytes; nullopt: not a regular file (a pipe would block), or not readable.
std::optional<std::string> FileHead(const std::string& path, size_t most = kFileKindBytes);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_FILE_HEAD_H_
