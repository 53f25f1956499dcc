// Fills, optimizers and norms over all tensors of a stage, a launch or two each.
#include <cstring>

#include "base/errors/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

static_assert(sizeof(FillEntry) == 24 && sizeof(UpdateEntry) == 64 && sizeof(NormEntry) == 40 &&
                  sizeof(LambEntry) == 72 && sizeof(PairEntry) == 32,
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
SgdFactors FactorsOf(const SgdArgs& a) {
  return {a.gradient_scale, a.learning_rate, a.momentum, a.nesterov ? 1U : 0U};
}
RmsPropFactors FactorsOf(const RmsPropArgs& a) {
  return {a.gradient_scale, a.inner_rate, a.outer_rate, a.decay, a.momentum, a.inside, a.outside};
}
AdamWFactors FactorsOf(const LambArgs& a) {
  return {a.gradient_scale, a.learning_rate, a.beta1,      a.beta2,
          a.epsilon,        a.correction1,   a.correction2};
}
float FactorsOf(const AverageArgs& a) { return a.rate; }

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

void Append(const char* what, const Tensor& first, const Tensor& second,
            Growing<PairEntry>* table) {
  const int64_t n = first.elements();
  CHECK_EQ(n, second.elements()) << what;
  CheckType(what, DType::kF32, {&first, &second});
  table->Append({.first = first.data<float>(), .second = second.data<float>(), .n = n},
                UpdateChunks(n), {&first, &second});
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
  if (queue_ != nullptr) queue_->Forget();
  for (KeptTable* kept : {&fills_, &updates_, &norms_, &lamb_norms_, &pairs_}) *kept = KeptTable{};
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

void KernelBackend::RmsPropAll(std::span<const RmsPropArgs> all) {
  constexpr char kWhat[] = "RmsProp";
  if (all.empty()) return;
  const size_t count = EqualFactors(all);
  Growing<UpdateEntry> table;
  for (const RmsPropArgs& args : all.first(count)) {
    const int64_t n = args.value.elements();
    CHECK_EQ(n, args.gradient.elements()) << kWhat;
    CheckType(kWhat, DType::kF32, {&args.value, &args.gradient, &args.square, &args.velocity});
    CheckType(kWhat, DType::kBF16, {&args.compute});
    table.Append({.value = args.value.data<float>(),
                  .gradient = args.gradient.data<float>(),
                  .first = args.square.data<float>(),
                  .second = DataOrNull<float>(args.velocity),
                  .compute = DataOrNull<Bf16>(args.compute),
                  .n = n,
                  .weight_decay = args.weight_decay},
                 UpdateChunks(n),
                 {&args.value, &args.gradient, &args.square, &args.velocity, &args.compute});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &updates_, kWhat);
  if (entries == nullptr) return;
  Note(cuda::RmsProp(
           stream,
           {static_cast<const UpdateEntry*>(entries), table.count(), table.chunks, table.wide},
           FactorsOf(all[0])),
       kWhat);
  RmsPropAll(all.subspan(count));
}

void KernelBackend::LambAll(std::span<const LambArgs> all) {
  constexpr char kWhat[] = "Lamb";
  if (all.empty()) return;
  const size_t count = EqualFactors(all);
  Growing<LambEntry> table;
  std::vector<NormArgs> norms;
  for (const LambArgs& args : all.first(count)) {
    const int64_t n = args.value.elements();
    CHECK_EQ(n, args.gradient.elements()) << kWhat;
    CheckType(kWhat, DType::kF32, {&args.value, &args.gradient, &args.m, &args.v});
    CheckType(kWhat, DType::kBF16, {&args.compute});
    table.Append({.value = args.value.data<float>(),
                  .gradient = args.gradient.data<float>(),
                  .m = args.m.data<float>(),
                  .v = args.v.data<float>(),
                  .compute = DataOrNull<Bf16>(args.compute),
                  .norms = args.norms.data<double>(),
                  .n = n,
                  .weight_decay = args.weight_decay,
                  .adapt = args.adapt ? 1U : 0U},
                 UpdateChunks(n), {&args.value, &args.gradient, &args.m, &args.v, &args.compute});
    norms.push_back({args.value, args.norms.Slice(0, Shape{1})});
    norms.push_back({args.gradient, args.norms.Slice(1, Shape{1})});
  }
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &updates_, kWhat);
  if (entries == nullptr) return;
  const LambTable launched = {static_cast<const LambEntry*>(entries), table.count(), table.chunks,
                              table.wide};
  Note(cuda::LambDirections(stream, launched, FactorsOf(all[0])), kWhat);
  NormsInto(norms, &lamb_norms_, kWhat);
  Note(cuda::LambSteps(stream, launched, all[0].learning_rate), kWhat);
  LambAll(all.subspan(count));
}

void KernelBackend::AverageAll(std::span<const AverageArgs> all) {
  constexpr char kWhat[] = "Average";
  if (all.empty()) return;
  const size_t count = EqualFactors(all);
  Growing<PairEntry> table;
  for (const AverageArgs& args : all.first(count)) Append(kWhat, args.value, args.average, &table);
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &pairs_, kWhat);
  if (entries == nullptr) return;
  Note(
      cuda::Average(
          stream, {static_cast<const PairEntry*>(entries), table.count(), table.chunks, table.wide},
          all[0].rate),
      kWhat);
  AverageAll(all.subspan(count));
}

void KernelBackend::SwapAll(std::span<const SwapArgs> all) {
  constexpr char kWhat[] = "Swap";
  if (all.empty()) return;
  Growing<PairEntry> table;
  for (const SwapArgs& args : all) Append(kWhat, args.a, args.b, &table);
  const cudaStream_t stream = Begin();
  const void* const entries = Upload(Bytes(table.entries), &pairs_, kWhat);
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
  Growing<NormEntry> table;
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
  const void* const entries = Upload(Bytes(table.entries), kept, what);
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
