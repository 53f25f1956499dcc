#include "plan/job/optimizer_kinds.h"

#include "plan/job/job_spec.h"

namespace stagecoach {
namespace {

constexpr char kDefaultOptimizer[] = "adamw";

}  // namespace

const KindList<OptimizerKind>& OptimizerKinds() {
  static const auto* const list = new KindList<OptimizerKind>("training.optimizer", "optimizer",
                                                              CallEach(kListedOptimizerKind));
  return *list;
}

OptimizerSpec::OptimizerSpec() {
  kind = kDefaultOptimizer;
  attributes = OptimizerKinds().Named(kind).Defaults();
}

}  // namespace stagecoach
