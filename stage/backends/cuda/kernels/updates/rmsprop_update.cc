#include "stage/backends/cuda/kernels/updates/rmsprop_update.h"

#include "operations/updates/rmsprop_update.h"
#include "stage/backends/cuda/kernels/updates/update_tables.h"

namespace stagecoach::cuda {
namespace {

cudaError_t Launch(cudaStream_t stream, const UpdateTable& table,
                   const RmsPropUpdateAttributes& attributes, const UpdateNumbers& step) {
  const RmsPropNumbers f = NumbersOf(attributes, step);
  return RmsProp(
      stream, table,
      {f.gradient_scale, f.inner_rate, f.outer_rate, f.decay, f.momentum, f.inside, f.outside});
}

absl::StatusOr<KernelOfAll> Update(KernelBackend& backend, std::span<const Call> calls) {
  return UpdateOfTables<RmsPropUpdateAttributes>(backend, calls, Launch);
}

}  // namespace

KernelList RmsPropUpdateKernels() { return {{"rmsprop_update", nullptr, Update}}; }

}  // namespace stagecoach::cuda
