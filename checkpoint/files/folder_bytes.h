// FolderBytes: how much disk files take.
// Threads:   any that may wait for files.  Units: bytes, the sum of the files' sizes.
#ifndef STAGECOACH_CHECKPOINT_FILES_FOLDER_BYTES_H_
#define STAGECOACH_CHECKPOINT_FILES_FOLDER_BYTES_H_

#include <cstdint>
#include <string>

#include "checkpoint/files/file_system.h"

namespace stagecoach {

// Of a file, or of all files below a folder. Links and files that cannot be read count as 0: others
// may remove them meanwhile.
int64_t BytesBelow(FileSystem& files, const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_FILES_FOLDER_BYTES_H_
