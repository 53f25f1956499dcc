#include "stage/backends/cuda/kernels/updates/sgd_update.h"

#include "operations/updates/sgd_update.h"
#include "stage/backends/cuda/kernels/updates/update_tables.h"

namespace stagecoach::cuda {
namespace {

cudaError_t Launch(cudaStream_t stream, const UpdateTable& table,
                   const SgdUpdateAttributes& attributes, const UpdateNumbers& step) {
  const SgdNumbers f = NumbersOf(attributes, step);
  return Sgd(stream, table, {f.gradient_scale, f.learning_rate, f.momentum, f.nesterov ? 1U : 0U});
}

absl::StatusOr<KernelOfAll> Update(KernelBackend& backend, std::span<const Call> calls) {
  return UpdateOfTables<SgdUpdateAttributes>(backend, calls, Launch);
}

}  // namespace

KernelList SgdUpdateKernels() { return {{"sgd_update", nullptr, Update}}; }

}  // namespace stagecoach::cuda
