// ServedFiles: the files of an export or of a job's history that clients fetch from the store.
// Threads: any that may wait for files.
// Units:   bytes.
// Errors:  the file system's.
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_SERVED_FILES_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_SERVED_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// Both in the order of names.
absl::StatusOr<std::vector<v1::ExportedFile>> ExportFilesIn(FileSystem& files,
                                                            const std::string& folder);
// metrics.jsonl up to its last whole line, and event files. None while there is no folder.
absl::StatusOr<std::vector<v1::ExportedFile>> RecordFilesIn(FileSystem& files,
                                                            const std::string& folder);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_SERVED_FILES_H_
