#include "stage/backends/cuda/kernels/updates/average_update.h"

#include <memory>

#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<KernelOfAll> Update(KernelBackend& backend, std::span<const Call>) {
  return [&backend, kept = std::make_shared<KeptTable>()](const KernelContext& context,
                                                          std::span<const KernelArguments> all) {
    constexpr char kWhat[] = "average_update";
    GrowingTable<PairEntry> table;
    for (const KernelArguments& a : all) AppendPair(kWhat, a.inputs[0], a.adds[0], &table);
    const cudaStream_t stream = backend.Begin();
    const void* const entries = backend.Upload(table.bytes(), kept.get(), kWhat);
    if (entries == nullptr) return;
    backend.Note(
        Average(stream,
                {static_cast<const PairEntry*>(entries), table.count(), table.chunks, table.wide},
                static_cast<float>(context.update->learning_rate)),
        kWhat);
  };
}

}  // namespace

KernelList AverageUpdateKernels() { return {{"average_update", nullptr, Update}}; }

}  // namespace stagecoach::cuda
