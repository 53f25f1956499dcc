#include "stage/backends/cuda/kernels/updates/adafactor_update.h"

#include "operations/updates/adafactor_update.h"
#include "stage/backends/cuda/kernels/updates/update_tables.h"

namespace stagecoach::cuda {
namespace {

static_assert(sizeof(AdafactorEntry) == 112, "no padding: compared as bytes");

constexpr char kWhat[] = "adafactor_update";
using Group = UpdateGroup<AdafactorUpdateAttributes>;

int64_t Chunks(int64_t all, int64_t each) { return (all + each - 1) / each; }

// The same entries as chunks of each kind.
struct Tables {
  GrowingTable<AdafactorEntry> rows, columns, matrices, elements;
};

// Squared norms, two for each parameter; means, one for each matrix.
struct Notes {
  KeptTable rows, columns, matrices;
  Tensor means;
};

// Makes a tensor that is not there yet. False: memory was refused.
bool Make(KernelBackend& backend, DType dtype, int64_t count, Tensor* tensor) {
  if (tensor->valid()) return true;
  auto made = MakeTensor(backend.allocator(), MemoryKind::kWorkspace, dtype, Shape{count});
  if (made.ok()) {
    *tensor = *std::move(made);
  } else {
    backend.NoteStatus(made.status(), kWhat);
  }
  return tensor->valid();
}

int64_t MatricesOf(const Group& group, std::span<const KernelArguments> all) {
  int64_t matrices = 0;
  for (size_t i = 0; i < group.each.size(); ++i) {
    matrices += FactoredShape(all[group.first + i].adds[1].shape()).matrices;
  }
  return matrices;
}

void Append(const UpdateOperands& of, const AdafactorUpdateAttributes& attributes, float* means,
            const double* norms, Tables* tables) {
  const FactoredShape shape(of.value.shape());
  const Tensor& last = of.state(of.states - 1);
  const Tensor m = attributes.beta1 != 0 ? of.state(of.states - 2) : Tensor();
  const int64_t n = of.value.elements();
  const AdafactorEntry entry = {.value = of.value.data<float>(),
                                .gradient = of.gradient.data<float>(),
                                .m = DataOrNull<float>(m),
                                .row = shape.factored ? last.data<float>() : nullptr,
                                .column = shape.factored ? of.state(0).data<float>() : nullptr,
                                .square = shape.factored ? nullptr : last.data<float>(),
                                .means = means,
                                .compute = DataOrNull<Bf16>(of.copy),
                                .norms = norms,
                                .n = n,
                                .rows = shape.rows,
                                .columns = shape.columns,
                                .weight_decay = static_cast<float>(attributes.weight_decay)};
  if (shape.factored && n > 0) {
    tables->rows.Append(entry, Chunks(shape.matrices * shape.rows, kFactorRows), {});
    tables->columns.Append(entry, shape.matrices * Chunks(shape.columns, kFactorColumns), {});
    tables->matrices.Append(entry, shape.matrices, {});
  }
  const Tensor square = shape.factored ? Tensor() : last;
  tables->elements.Append(entry, UpdateChunks(n), {&of.value, &of.gradient, &m, &square, &of.copy});
}

// Null entries: memory was refused. A table without entries is not uploaded.
AdafactorTable Uploaded(KernelBackend& backend, const GrowingTable<AdafactorEntry>& table,
                        KeptTable* kept) {
  const void* const entries =
      table.entries.empty() ? nullptr : backend.Upload(table.bytes(), kept, kWhat);
  return {static_cast<const AdafactorEntry*>(entries), table.count(), table.chunks, table.wide};
}

void Launch(KernelBackend& backend, const Tables& made, Group& group, Notes& notes,
            std::span<const Backend::NormArgs> norms, const AdafactorFactors& f) {
  const cudaStream_t stream = backend.Begin();
  const AdafactorTable elements = Uploaded(backend, made.elements, &group.table);
  if (elements.entries == nullptr) return;
  if (made.rows.count() > 0) {
    const AdafactorTable rows = Uploaded(backend, made.rows, &notes.rows);
    const AdafactorTable columns = Uploaded(backend, made.columns, &notes.columns);
    const AdafactorTable matrices = Uploaded(backend, made.matrices, &notes.matrices);
    for (const AdafactorTable* table : {&rows, &columns, &matrices}) {
      if (table->entries == nullptr) return;
    }
    backend.Note(FactorRows(stream, rows, f), kWhat);
    backend.Note(FactorColumns(stream, columns, f), kWhat);
    backend.Note(FactorMeans(stream, matrices), kWhat);
  }
  backend.Note(AdafactorDirections(stream, elements, f), kWhat);
  backend.NormsInto(norms, &group.norms_table, kWhat);
  backend.Note(AdafactorSteps(stream, elements, f), kWhat);
}

void Run(KernelBackend& backend, Group& group, Notes& notes, const UpdateNumbers& step,
         std::span<const KernelArguments> all) {
  const auto count = static_cast<int64_t>(group.each.size());
  if (!Make(backend, DType::kF64, 2 * count, &group.norms) ||
      !Make(backend, DType::kF32, MatricesOf(group, all), &notes.means)) {
    return;
  }
  Tables tables;
  std::vector<Backend::NormArgs> norms;
  float* means = notes.means.data<float>();
  for (int64_t i = 0; i < count; ++i) {
    const auto& attributes = group.each[static_cast<size_t>(i)];
    const UpdateOperands of(all[group.first + static_cast<size_t>(i)]);
    CheckTypes(kWhat, of);
    Append(of, attributes, means, group.norms.data<double>() + 2 * i, &tables);
    means += FactoredShape(of.value.shape()).matrices;
    norms.push_back({of.value, group.norms.Slice(2 * i, Shape{1})});
    norms.push_back({of.gradient, group.norms.Slice(2 * i + 1, Shape{1})});
  }
  const AdafactorNumbers f = NumbersOf(group.each[0], step);
  Launch(backend, tables, group, notes, norms,
         {f.gradient_scale, f.learning_rate, f.decay, f.rest, f.beta1, f.epsilon1, f.epsilon2,
          f.clip, f.scale_by_parameter ? 1U : 0U});
}

absl::StatusOr<KernelOfAll> Update(KernelBackend& backend, std::span<const Call> calls) {
  const auto groups =
      GroupsOf<AdafactorUpdateAttributes>(calls, [](AdafactorUpdateAttributes attributes) {
        attributes.weight_decay = 0;
        return attributes;
      });
  const auto notes = std::make_shared<std::vector<Notes>>(groups->size());
  return [&backend, groups, notes](const KernelContext& context,
                                   std::span<const KernelArguments> all) {
    for (size_t i = 0; i < groups->size(); ++i) {
      Run(backend, (*groups)[i], (*notes)[i], *context.update, all);
    }
  };
}

}  // namespace

KernelList AdafactorUpdateKernels() { return {{"adafactor_update", nullptr, Update}}; }

}  // namespace stagecoach::cuda
