// The checkpoints of a job, as the API shows them, newest first; a damaged one has an error. Reads
// manifests, and with `verify` every byte of every file and of every tensor. owner: JobView::owner;
// users see no paths (coordinator/loop/hidden_places.h).
// Threads:   any that may wait for files.
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_CHECKPOINT_LIST_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_CHECKPOINT_LIST_H_

#include <string>

#include "checkpoint/store/store.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

v1::ListCheckpointsResponse ListCheckpointsOf(CheckpointStore& store, const std::string& job_id,
                                              const std::string& owner, bool verify);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_CHECKPOINT_LIST_H_
