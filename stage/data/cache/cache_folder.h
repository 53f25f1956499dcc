// CacheFolder: the folder for what readers make of data and can make again. Anybody may empty it at
// any time.
// Errors: naming --cache-dir and the folder; PERMISSION_DENIED: others may write to the default one.
// Threads: any.
#ifndef STAGECOACH_STAGE_DATA_CACHE_CACHE_FOLDER_H_
#define STAGECOACH_STAGE_DATA_CACHE_CACHE_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {

// Makes it if it is not there. given: empty for the default, a folder of this user below the
// system's folder for temporary files.
absl::StatusOr<std::string> CacheFolder(FileSystem& files, const std::string& given);

// "--cache-dir = "/cache": " before the error, with a remedy behind it.
absl::Status CacheError(const std::string& folder, const absl::Status& status);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_CACHE_CACHE_FOLDER_H_
