// OpenName: opens one name in a folder that is open already, and follows no link. So a path is
// walked by descriptors alone. Each name is looked up in the very folder that was looked at before,
// whatever is renamed or becomes a link meanwhile. Nothing is checked by its name and opened by it
// later.
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
  kBest,   // openat2 where there is one
  kPlain,  // openat
};

// Not open: errno says why. ELOOP or, with O_DIRECTORY, ENOTDIR: it may be a link (LinkTarget). The
// name is not empty, not ".." and has no slash.
FileHandle OpenName(const FileHandle& folder, const std::string& name, int flags, OpenCall call);

// Whether this kernel, and what guards this process, know openat2.
bool HasOpenat2();

// Where a link leads; empty: it is none.
std::string LinkTarget(const FileHandle& folder, const std::string& name);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_FILES_OPEN_NAME_H_
