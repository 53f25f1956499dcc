// OptimizerKinds: the optimizers that a job can name: their fields and the state that they keep.
// Their updates are in stage/cell/optimizers, one file a kind, found by the same names.
// Ownership: the list owns nothing; kinds live as long as the process.
// Threads:   any.
#ifndef STAGECOACH_PLAN_JOB_OPTIMIZER_KINDS_H_
#define STAGECOACH_PLAN_JOB_OPTIMIZER_KINDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/listed.h"
#include "plan/job/kind_list.h"

namespace stagecoach {

inline constexpr double kMaxWeightDecay = 1e3;

class OptimizerKind : public FieldKind {
 public:
  // Names of the tensors that it keeps for each parameter, ascending (plan/job/optimizer_slots.h).
  // The fields are in range.
  virtual std::vector<std::string> Slots(const KindSpec& optimizer) const = 0;
  // Initial value of such a tensor.
  virtual float SlotStart(const KindSpec& /*optimizer*/, std::string_view /*slot*/) const {
    return 0.0f;
  }
};

// Each has a file in plan/optimizers, which defines `const OptimizerKind* AdamWOptimizerKind()`,
// and a message in proto/stagecoach/v1/training.proto.
#define STAGECOACH_OPTIMIZERS AdamW, Lamb, RmsProp, Sgd
STAGECOACH_LISTED(Giver<const OptimizerKind*>, OptimizerKind, STAGECOACH_OPTIMIZERS)

const KindList<OptimizerKind>& OptimizerKinds();

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_OPTIMIZER_KINDS_H_
