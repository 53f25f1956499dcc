// ReadRegularFile: the text of a PEM file. A name may lead to a pipe, whose reader waits for ever,
// or to a folder.
// Threads: any.
// Errors:  messages that begin with a verb, for the caller to name the file in front: NOT_FOUND,
//          PERMISSION_DENIED or UNAVAILABLE "cannot be read: ...", FAILED_PRECONDITION "is no
//          regular file" or "is larger than ...".
#ifndef STAGECOACH_SERVICES_COMMON_TLS_REGULAR_FILE_H_
#define STAGECOACH_SERVICES_COMMON_TLS_REGULAR_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

// A system's bundle of all public authorities has a quarter of a megabyte.
inline constexpr size_t kMostPemBytes = size_t{16} << 20;

absl::StatusOr<std::string> ReadRegularFile(const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_REGULAR_FILE_H_
