#include "stage/backends/cuda/kernels/updates/adamw_update.h"

#include "operations/updates/adamw_update.h"
#include "stage/backends/cuda/kernels/updates/update_tables.h"

namespace stagecoach::cuda {
namespace {

cudaError_t Launch(cudaStream_t stream, const UpdateTable& table,
                   const AdamWUpdateAttributes& attributes, const UpdateNumbers& step) {
  const AdamWNumbers f = NumbersOf(attributes, step);
  return AdamW(stream, table,
               {f.gradient_scale, f.learning_rate, f.beta1, f.beta2, f.epsilon, f.correction1,
                f.correction2});
}

absl::StatusOr<KernelOfAll> Update(KernelBackend& backend, std::span<const Call> calls) {
  return UpdateOfTables<AdamWUpdateAttributes>(backend, calls, Launch);
}

}  // namespace

KernelList AdamWUpdateKernels() { return {{"adamw_update", nullptr, Update}}; }

}  // namespace stagecoach::cuda
