#include "stage/backends/cuda/kernels/updates/lamb_update.h"

#include "operations/updates/lamb_update.h"
#include "stage/backends/cuda/kernels/updates/update_tables.h"

namespace stagecoach::cuda {
namespace {

static_assert(sizeof(LambEntry) == 72, "no padding: compared as bytes");

constexpr char kWhat[] = "lamb_update";
using Group = UpdateGroup<LambUpdateAttributes>;

// Two squared norms for each parameter. False: memory was refused.
bool MakeNorms(KernelBackend& backend, Group& group) {
  if (group.norms.valid()) return true;
  auto norms = MakeTensor(backend.allocator(), MemoryKind::kWorkspace, DType::kF64,
                          Shape{2 * static_cast<int64_t>(group.each.size())});
  if (!norms.ok()) {
    backend.NoteStatus(norms.status(), kWhat);
    return false;
  }
  group.norms = *std::move(norms);
  return true;
}

void Run(KernelBackend& backend, Group& group, const UpdateNumbers& step,
         std::span<const KernelArguments> all) {
  if (!MakeNorms(backend, group)) return;
  GrowingTable<LambEntry> table;
  std::vector<Backend::NormArgs> norms;
  for (size_t i = 0; i < group.each.size(); ++i) {
    const UpdateOperands of(all[group.first + i]);
    CheckTypes(kWhat, of);
    const int64_t n = of.value.elements(), place = 2 * static_cast<int64_t>(i);
    table.Append({.value = of.value.data<float>(),
                  .gradient = of.gradient.data<float>(),
                  .m = of.state(0).data<float>(),
                  .v = of.state(1).data<float>(),
                  .compute = DataOrNull<Bf16>(of.copy),
                  .norms = group.norms.data<double>() + place,
                  .n = n,
                  .weight_decay = static_cast<float>(group.each[i].weight_decay),
                  .adapt = group.each[i].adapt ? 1U : 0U},
                 UpdateChunks(n), {&of.value, &of.gradient, &of.state(0), &of.state(1), &of.copy});
    norms.push_back({of.value, group.norms.Slice(place, Shape{1})});
    norms.push_back({of.gradient, group.norms.Slice(place + 1, Shape{1})});
  }
  const cudaStream_t stream = backend.Begin();
  const void* const entries = backend.Upload(table.bytes(), &group.table, kWhat);
  if (entries == nullptr) return;
  const LambTable launched = {static_cast<const LambEntry*>(entries), table.count(), table.chunks,
                              table.wide};
  const AdamWNumbers f = NumbersOf(group.each[0], step);
  backend.Note(LambDirections(stream, launched,
                              {f.gradient_scale, f.learning_rate, f.beta1, f.beta2, f.epsilon,
                               f.correction1, f.correction2}),
               kWhat);
  backend.NormsInto(norms, &group.norms_table, kWhat);
  backend.Note(LambSteps(stream, launched, f.learning_rate), kWhat);
}

absl::StatusOr<KernelOfAll> Update(KernelBackend& backend, std::span<const Call> calls) {
  const auto groups = GroupsOf<LambUpdateAttributes>(calls, [](LambUpdateAttributes attributes) {
    attributes.weight_decay = 0;
    attributes.adapt = false;
    return attributes;
  });
  return [&backend, groups](const KernelContext& context, std::span<const KernelArguments> all) {
    for (Group& group : *groups) Run(backend, group, *context.update, all);
  };
}

}  // namespace

KernelList LambUpdateKernels() { return {{"lamb_update", nullptr, Update}}; }

}  // namespace stagecoach::cuda
