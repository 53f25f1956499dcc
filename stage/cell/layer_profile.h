// Layer profile: seconds of forward and backward of every layer, measured on this back end. Shapes
// are the real ones of the largest micro-batch, inputs are made up.
// Threads: executor thread.  Errors: as ValidateJob and the allocator; CANCELLED after `cancelled`.
#ifndef STAGECOACH_STAGE_CELL_LAYER_PROFILE_H_
#define STAGECOACH_STAGE_CELL_LAYER_PROFILE_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "plan/costs/cost_model.h"
#include "plan/job/job_spec.h"
#include "stage/backends/backend.h"

namespace stagecoach {

// Times are the least of several runs after a warm-up. Equal layers are measured once. `cancelled`
// is asked between runs.
absl::StatusOr<std::vector<LayerProfile>> ProfileLayers(const JobSpec& spec, const Network& network,
                                                        Backend& backend, const Clock& clock,
                                                        const std::function<bool()>& cancelled);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_LAYER_PROFILE_H_
