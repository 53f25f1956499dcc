// The one list of the optimizers: a line a kind. For KIND(AdamW), plan/optimizers/adamw.cc defines `const OptimizerKind*
// AdamWOptimizerKind()` and stage/cell/optimizers/adamw.cc MakeAdamW; the message is in
// proto/stagecoach/v1/training.proto.
#ifndef STAGECOACH_PLAN_JOB_OPTIMIZER_KIND_LIST_H_
#define STAGECOACH_PLAN_JOB_OPTIMIZER_KIND_LIST_H_

#define STAGECOACH_OPTIMIZER_KINDS(KIND) \
  KIND(AdamW)                            \
  KIND(Lamb)                             \
  KIND(RmsProp)                          \
  KIND(Sgd)

namespace stagecoach {

class OptimizerKind;

#define STAGECOACH_DECLARE(Name) const OptimizerKind* Name##OptimizerKind();
STAGECOACH_OPTIMIZER_KINDS(STAGECOACH_DECLARE)
#undef STAGECOACH_DECLARE

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_OPTIMIZER_KIND_LIST_H_
