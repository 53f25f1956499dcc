// The share of a process's open files that each server's connections may take. All shares stand
// here: together they must leave some for checkpoints, the journal, and the process's own calls.
// Threads: any.
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_OPEN_FILES_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_OPEN_FILES_H_

#include <sys/resource.h>

namespace stagecoach {

// A half, an eighth and a sixteenth: more than a quarter is left.
enum class FileShare { kGrpc, kHttp, kProbes };

// How many connections such a server may have in a process that may open so many files: what is
// asked for, or its share.
int MostConnections(FileShare share, int asked, rlim_t open_files);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_OPEN_FILES_H_
