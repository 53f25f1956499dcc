// StageKernels: the operations that a stage's device has no kernel for, as the stage registers
// them, and the check that a plan does without them. The planner asks it for every partition.
// Ownership: plain values.  Threads: pure.
// Errors:    FAILED_PRECONDITION naming layer, operation, stage and device, with the remedy.
#ifndef STAGECOACH_PLAN_STAGE_KERNELS_H_
#define STAGECOACH_PLAN_STAGE_KERNELS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct StageKernels {
  std::string stage, device;         // for people
  std::vector<std::string> without;  // operations of the catalogue; empty: it has all
  friend bool operator==(const StageKernels&, const StageKernels&) = default;
};

// Of a stage with layers [first, last): the calls of its layers, in the form that writes texts too,
// of the loss on the last stage, and of updates. `place`: the stage's number.
absl::Status CheckKernels(const JobSpec& spec, const Network& network, int first, int last,
                          int place, const StageKernels& kernels);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_STAGE_KERNELS_H_
