#include "plan/job/optimizer_kinds.h"

#include "plan/job/job_spec.h"
#include "plan/job/optimizer_kind_list.h"

namespace stagecoach {
namespace {

constexpr char kDefaultOptimizer[] = "adamw";

}  // namespace

const KindList<OptimizerKind>& OptimizerKinds() {
#define STAGECOACH_ENTRY(Name) Name##OptimizerKind(),
  static const auto* const list = new KindList<OptimizerKind>(
      "training.optimizer", "optimizer", {STAGECOACH_OPTIMIZER_KINDS(STAGECOACH_ENTRY)});
#undef STAGECOACH_ENTRY
  return *list;
}

OptimizerSpec::OptimizerSpec() {
  kind = kDefaultOptimizer;
  attributes = OptimizerKinds().Named(kind).Defaults();
}

}  // namespace stagecoach
