// Fills, optimizers and norms over all tensors of a stage, a launch or two each.
#include <cstring>

#include "base/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

static_assert(sizeof(FillEntry) == 24 && sizeof(UpdateEntry) == 64 && sizeof(NormEntry) == 40,
              "no padding: compared as bytes");

bool LiesOnPack(const Tensor& tensor) {
  return !tensor.valid() || reinterpret_cast<uintptr_t>(tensor.raw()) % 16 == 0;
}

template <typename Entry>
std::span<const std::byte> Bytes(const std::vector<Entry>& entries) {
  return std::as_bytes(std::span<const Entry>(entries));
}

// A table as it grows on the host. No more than 2^31 chunks of any kind fit a card's memory.
template <typename Entry>
struct Growing {
  std::vector<Entry> entries;
  int64_t chunks = 0;
  bool wide = true;

  void Append(Entry entry, int64_t its_chunks, std::initializer_list<const Tensor*> tensors) {
    entry.first_chunk = chunks;
    entries.push_back(entry);
    chunks += its_chunks;
    for (const Tensor* tensor : tensors) wide = wide && LiesOnPack(*tensor);
  }
  int64_t count() const { return static_cast<int64_t>(entries.size()); }
};

int64_t UpdateChunks(int64_t elements) { return (elements + kUpdateChunk - 1) / kUpdateChunk; }

AdamWFactors FactorsOf(const AdamWArgs& a) {
  return {a.gradient_scale, a.learning_rate, a.beta1,      a.beta2,
          a.epsilon,        a.correction1,   a.correction2};
}
SgdFactors FactorsOf(const SgdArgs& a) { return {a.gradient_scale, a.learning_rate, a.momentum}; }

// Length of the run of tensors at the front that are updated with the same factors, all in
// practice.
template <typename Args>
size_t EqualFactors(std::span<const Args> all) {
  const auto first = FactorsOf(all[0]);
  size_t count = 1;
  for (; count < all.size(); ++count) {
    const auto factors = FactorsOf(all[count]);
    if (std::memcmp(&factors, &first, sizeof first) != 0) break;
  }
  return count;
}

}  // namespace

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
  for (KeptTable* kept : {&fills_, &updates_, &norms_}) *kept = KeptTable{};
  fault().ForgetRefusal();
}

void KernelBackend::FillAll(std::span<const Tensor> all, float value) {
  constexpr char kWhat[] = "Fill";
  if (all.empty()) return;
  Growing<FillEntry> table;
  for (const Tensor& tensor : all) {
    CheckType(kWhat, DType::kF32, {&tensor});
    const int64_t n = tensor.elements();
    table.Append({.y = tensor.data<float>(), .n = n}, UpdateChunks(n), {&tensor});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &fills_, kWhat);
  if (entries == nullptr) return;
  Note(
      cuda::FillAll(
          stream, {static_cast<const FillEntry*>(entries), table.count(), table.chunks, table.wide},
          value),
      kWhat);
}

void KernelBackend::SgdAll(std::span<const SgdArgs> all) {
  constexpr char kWhat[] = "Sgd";
  if (all.empty()) return;
  const size_t count = EqualFactors(all);
  Growing<UpdateEntry> table;
  for (const SgdArgs& args : all.first(count)) {
    const int64_t n = args.value.elements();
    CHECK_EQ(n, args.gradient.elements()) << kWhat;
    CheckType(kWhat, DType::kF32, {&args.value, &args.gradient, &args.velocity});
    CheckType(kWhat, DType::kBF16, {&args.compute});
    table.Append({.value = args.value.data<float>(),
                  .gradient = args.gradient.data<float>(),
                  .first = DataOrNull<float>(args.velocity),
                  .compute = DataOrNull<Bf16>(args.compute),
                  .n = n,
                  .weight_decay = args.weight_decay},
                 UpdateChunks(n), {&args.value, &args.gradient, &args.velocity, &args.compute});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &updates_, kWhat);
  if (entries == nullptr) return;
  Note(
      cuda::Sgd(stream,
                {static_cast<const UpdateEntry*>(entries), table.count(), table.chunks, table.wide},
                FactorsOf(all[0])),
      kWhat);
  SgdAll(all.subspan(count));
}

void KernelBackend::AdamWAll(std::span<const AdamWArgs> all) {
  constexpr char kWhat[] = "AdamW";
  if (all.empty()) return;
  const size_t count = EqualFactors(all);
  Growing<UpdateEntry> table;
  for (const AdamWArgs& args : all.first(count)) {
    const int64_t n = args.value.elements();
    CHECK_EQ(n, args.gradient.elements()) << kWhat;
    CheckType(kWhat, DType::kF32, {&args.value, &args.gradient, &args.m, &args.v});
    CheckType(kWhat, DType::kBF16, {&args.compute});
    table.Append({.value = args.value.data<float>(),
                  .gradient = args.gradient.data<float>(),
                  .first = args.m.data<float>(),
                  .second = args.v.data<float>(),
                  .compute = DataOrNull<Bf16>(args.compute),
                  .n = n,
                  .weight_decay = args.weight_decay},
                 UpdateChunks(n), {&args.value, &args.gradient, &args.m, &args.v, &args.compute});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &updates_, kWhat);
  if (entries == nullptr) return;
  Note(cuda::AdamW(
           stream,
           {static_cast<const UpdateEntry*>(entries), table.count(), table.chunks, table.wide},
           FactorsOf(all[0])),
       kWhat);
  AdamWAll(all.subspan(count));
}

void KernelBackend::SquaredNorms(std::span<const NormArgs> all) {
  constexpr char kWhat[] = "SquaredNorm";
  if (all.empty()) return;
  Growing<NormEntry> table;
  for (const NormArgs& args : all) {
    CheckType(kWhat, DType::kF32, {&args.tensor});
    const int64_t n = args.tensor.elements();
    const NormPlan plan = PlanNorm(n);
    table.Append({.x = args.tensor.data<float>(),
                  .result = args.result.data<double>(),
                  .n = n,
                  .elements_per_chunk = plan.elements_per_chunk},
                 plan.chunks, {&args.tensor});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &norms_, kWhat);
  if (entries == nullptr) return;
  // A double for 64 KiB of gradients at least: far less than the workspace on any card.
  auto* const scratch =
      static_cast<double*>(Scratch(static_cast<size_t>(table.chunks) * sizeof(double), kWhat));
  if (scratch == nullptr) return;
  Note(
      cuda::SquaredNorms(
          stream, {static_cast<const NormEntry*>(entries), table.count(), table.chunks, table.wide},
          scratch),
      kWhat);
}

}  // namespace stagecoach::cuda
