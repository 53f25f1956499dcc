// What the kinds of pools have in common: `Spec` has a kernel, a stride and a padding.
// Errors: INVALID_ARGUMENT with the field's path in the job.
#ifndef STAGECOACH_NETWORK_LAYERS_POOL_FIELDS_H_
#define STAGECOACH_NETWORK_LAYERS_POOL_FIELDS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "network/layer_builder.h"
#include "operations/pool.h"

namespace stagecoach {

// Without a stride it is the kernel's.
PoolSteps MakePoolSteps(const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride,
                        const std::vector<int64_t>& padding);
absl::Status CheckPool(std::string_view kind, bool kernel_given, const PoolSteps& steps,
                       const ValueType& x, const LayerPlace& place);
std::string PoolFunction(std::string_view kind, const PoolSteps& steps);

template <typename Spec>
PoolSteps PoolStepsOf(const Spec& spec) {
  return MakePoolSteps(spec.kernel, spec.stride, spec.padding);
}

// Of a pool that fits its image.
template <typename Spec>
absl::StatusOr<PoolSteps> CheckedSteps(std::string_view kind, const Spec& spec, const ValueType& x,
                                       const LayerPlace& place) {
  const PoolSteps steps = PoolStepsOf(spec);
  const absl::Status status = CheckPool(kind, !spec.kernel.empty(), steps, x, place);
  if (!status.ok()) return status;
  return steps;
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_POOL_FIELDS_H_
