// The share of a process's open files that each server's connections may take. All shares stand
// here: together they must leave some for checkpoints, the journal, and the process's own calls.
// Threads: any.
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_OPEN_FILES_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_OPEN_FILES_H_

#include <sys/resource.h>

namespace stagecoach {

// One half, one eighth and one sixteenth: five sixteenths are left.
enum class FileShare { kGrpc, kHttp, kProbes };

// The smaller of `asked` and the server's share of `open_files`.
int MostConnections(FileShare share, int asked, rlim_t open_files);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_OPEN_FILES_H_
