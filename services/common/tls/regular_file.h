// ReadRegularFile: the text of a PEM file. A name may lead to a pipe, whose reader waits for ever,
// or to a folder.
// Threads: any.
// Errors:  the caller puts the file's name in front of the message. "cannot be read: ..." is
//          NOT_FOUND, PERMISSION_DENIED or UNAVAILABLE. "is no regular file" and "is larger than
//          ..." are FAILED_PRECONDITION.
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
