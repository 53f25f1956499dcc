// OptimizerKinds: the optimizers that a job can name: their fields, the states that they keep, and
// the call that updates a parameter (operations/updates/update.h).
// Ownership: the list owns nothing; kinds live as long as the process.
// Threads:   any.
#ifndef STAGECOACH_PLAN_JOB_OPTIMIZER_KINDS_H_
#define STAGECOACH_PLAN_JOB_OPTIMIZER_KINDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/listed.h"
#include "base/numbers/shape.h"
#include "operations/updates/update.h"
#include "plan/job/kind_list.h"

namespace stagecoach {

// A float32 tensor that an optimizer keeps beside a parameter.
struct OptimizerState {
  std::string slot;  // its name (plan/job/optimizer_slots.h)
  Shape shape;
  float start = 0.0f;  // initial value
};

// The fields are in range.
class OptimizerKind : public FieldKind {
 public:
  // States of a parameter of this shape, ascending by their slots, as its update takes them.
  virtual std::vector<OptimizerState> States(const KindSpec& optimizer,
                                             const Shape& parameter) const = 0;
  // The call of its update, without operands. `decays`: weight decay is for this parameter too.
  virtual Call Update(const KindSpec& optimizer, bool decays) const = 0;
};

// Each has a file in plan/optimizers, which defines `const OptimizerKind* AdamWOptimizerKind()`,
// and a message in proto/stagecoach/v1/training.proto.
#define STAGECOACH_OPTIMIZERS Adafactor, AdamW, Lamb, RmsProp, Sgd
STAGECOACH_LISTED(Giver<const OptimizerKind*>, OptimizerKind, STAGECOACH_OPTIMIZERS)

const KindList<OptimizerKind>& OptimizerKinds();

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_OPTIMIZER_KINDS_H_
