// Data root flags: the files that the operator lets jobs read on this machine, by the stage's
// flags.
//   - --data-root: these folders and files, nothing else.
//   - No --data-root, on loopback: every file, as on a machine with one user; the log says so.
//   - No --data-root, off loopback: none; a job with files is refused with the name of the flag.
// The stage's own key and state are never data. Data sets of the cluster need no root.
// Errors: INVALID_ARGUMENT naming the flag.
#ifndef STAGECOACH_SERVICES_STAGE_DATA_ROOT_FLAGS_H_
#define STAGECOACH_SERVICES_STAGE_DATA_ROOT_FLAGS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "services/stage/stage_server.h"
#include "stage/files/data_roots.h"

namespace stagecoach {

// data_sets: of the cluster; borrowed, null: they cannot be read.
absl::StatusOr<std::unique_ptr<DataRoots>> MakeDataRoots(const StageFlags& flags,
                                                         DataSets* data_sets = nullptr);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_DATA_ROOT_FLAGS_H_
