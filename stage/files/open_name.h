// OpenName: opens one name in a folder that is open already, and follows no link. So a path is
// walked by descriptors alone. Each name is looked up in the folder that was opened before it, even
// if something is renamed or becomes a link meanwhile. No file is checked by its name and opened by
// the name later.
// It uses openat2 (Linux 5.6): RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS. Some
// sandboxes do not know that call. There it uses openat with O_NOFOLLOW, which for a single name
// that is not ".." refuses the same.
// Threads: any.
#ifndef STAGECOACH_STAGE_FILES_OPEN_NAME_H_
#define STAGECOACH_STAGE_FILES_OPEN_NAME_H_

#include <cstdint>
#include <string>

#include "base/files/file_handle.h"

namespace stagecoach {

enum class OpenCall : uint8_t {
  kBest,   // openat2 if the kernel has it
  kPlain,  // openat
};

// Not open: errno says why. ELOOP or, with O_DIRECTORY, ENOTDIR: it may be a link (LinkTarget). The
// name is not empty, not ".." and has no slash.
FileHandle OpenName(const FileHandle& folder, const std::string& name, int flags, OpenCall call);

// Whether this kernel, and this process's sandbox, know openat2.
bool HasOpenat2();

// The target of a link; empty: it is no link.
std::string LinkTarget(const FileHandle& folder, const std::string& name);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_FILES_OPEN_NAME_H_
