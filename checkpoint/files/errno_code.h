// The status code of what a system call answers, as FileSystem promises it.
#ifndef STAGECOACH_CHECKPOINT_FILES_ERRNO_CODE_H_
#define STAGECOACH_CHECKPOINT_FILES_ERRNO_CODE_H_

#include <cerrno>

#include "absl/status/status.h"

namespace stagecoach {

inline absl::StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    case EIO:
      return absl::StatusCode::kDataLoss;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_FILES_ERRNO_CODE_H_
