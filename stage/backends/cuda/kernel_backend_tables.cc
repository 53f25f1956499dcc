// Fills, swaps and norms over all tensors of a stage, a launch or two each.
#include <cstring>

#include "base/errors/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

static_assert(sizeof(FillEntry) == 24 && sizeof(NormEntry) == 40 && sizeof(PairEntry) == 32,
              "no padding: compared as bytes");

const void* KernelBackend::Upload(std::span<const std::byte> table, KeptTable* kept,
                                  const char* what) {
  const bool same = kept->host.size() == table.size() &&
                    std::memcmp(kept->host.data(), table.data(), table.size()) == 0;
  if (same) return kept->device.raw();
  kept->host.clear();  // until the new one is there
  kept->device.Reset();
  auto device = MakeTensor(allocator(), MemoryKind::kWorkspace, DType::kU8,
                           Shape{static_cast<int64_t>(table.size())});
  if (!device.ok()) {
    fault().NoteStatus(device.status(), what);
    return nullptr;
  }
  kept->device = *std::move(device);
  kept->host.assign(table.begin(), table.end());
  CopyFromHost(kept->host, kept->device);
  return kept->device.raw();
}

void KernelBackend::EndCell() {
  if (queue_ != nullptr) queue_->Forget();
  for (KeptTable* kept : {&fills_, &norms_, &pairs_}) *kept = KeptTable{};
  fault().ForgetRefusal();
}

void KernelBackend::FillAll(std::span<const Tensor> all, float value) {
  constexpr char kWhat[] = "Fill";
  if (all.empty()) return;
  GrowingTable<FillEntry> table;
  for (const Tensor& tensor : all) {
    CheckType(kWhat, DType::kF32, {&tensor});
    const int64_t n = tensor.elements();
    table.Append({.y = tensor.data<float>(), .n = n}, UpdateChunks(n), {&tensor});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(table.bytes(), &fills_, kWhat);
  if (entries == nullptr) return;
  Note(
      cuda::FillAll(
          stream, {static_cast<const FillEntry*>(entries), table.count(), table.chunks, table.wide},
          value),
      kWhat);
}

void KernelBackend::SwapAll(std::span<const SwapArgs> all) {
  constexpr char kWhat[] = "Swap";
  if (all.empty()) return;
  GrowingTable<PairEntry> table;
  for (const SwapArgs& args : all) AppendPair(kWhat, args.a, args.b, &table);
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(table.bytes(), &pairs_, kWhat);
  if (entries == nullptr) return;
  Note(cuda::Swap(stream, {static_cast<const PairEntry*>(entries), table.count(), table.chunks,
                           table.wide}),
       kWhat);
}

void KernelBackend::SquaredNorms(std::span<const NormArgs> all) {
  NormsInto(all, &norms_, "SquaredNorm");
}

void KernelBackend::NormsInto(std::span<const NormArgs> all, KeptTable* kept, const char* what) {
  if (all.empty()) return;
  GrowingTable<NormEntry> table;
  for (const NormArgs& args : all) {
    CheckType(what, DType::kF32, {&args.tensor});
    const int64_t n = args.tensor.elements();
    const NormPlan plan = PlanNorm(n);
    table.Append({.x = args.tensor.data<float>(),
                  .result = args.result.data<double>(),
                  .n = n,
                  .elements_per_chunk = plan.elements_per_chunk},
                 plan.chunks, {&args.tensor});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(table.bytes(), kept, what);
  if (entries == nullptr) return;
  // A double for 64 KiB of gradients at least: far less than the workspace on any card.
  auto* const scratch =
      static_cast<double*>(Scratch(static_cast<size_t>(table.chunks) * sizeof(double), what));
  if (scratch == nullptr) return;
  Note(
      cuda::SquaredNorms(
          stream, {static_cast<const NormEntry*>(entries), table.count(), table.chunks, table.wide},
          scratch),
      what);
}

}  // namespace stagecoach::cuda
