// For kernels of updates on the host: calls of all parameters as tables, a table for each run
// of calls with equal factors. In practice that is one: what a parameter has for itself is in its entry.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_UPDATE_TABLES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_UPDATE_TABLES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels/updates/update_table.h"
#include "stage/backends/update_operands.h"

namespace stagecoach::cuda {

static_assert(sizeof(UpdateEntry) == 64, "no padding: compared as bytes");

template <typename Attributes>
struct UpdateGroup {
  size_t first = 0;              // of the calls
  std::vector<Attributes> each;  // of its calls
  KeptTable table = {}, norms_table = {};
  Tensor norms = {};  // for an update that needs some
};

// The calls in runs of equal factors. `shared` leaves out of attributes what is in the entry.
template <typename Attributes, typename Shared>
std::shared_ptr<std::vector<UpdateGroup<Attributes>>> GroupsOf(std::span<const Call> calls,
                                                               Shared shared) {
  auto groups = std::make_shared<std::vector<UpdateGroup<Attributes>>>();
  for (size_t i = 0; i < calls.size(); ++i) {
    auto attributes = AttributesOf<Attributes>(calls[i]);
    if (groups->empty() || shared(groups->back().each[0]) != shared(attributes)) {
      groups->push_back({.first = i, .each = {}});
    }
    groups->back().each.push_back(std::move(attributes));
  }
  return groups;
}

inline void CheckTypes(const char* what, const UpdateOperands& of) {
  const int64_t n = of.value.elements();
  CHECK_EQ(n, of.gradient.elements()) << what;
  CheckType(what, DType::kF32, {&of.value, &of.gradient});
  for (size_t i = 0; i < of.states; ++i) CheckType(what, DType::kF32, {&of.state(i)});
  CheckType(what, DType::kBF16, {&of.copy});
}

// An update with up to two states of the parameter's shape, in one launch:
// cudaError_t launch(stream, table, attributes, numbers).
template <typename Attributes, typename Launch>
KernelOfAll UpdateOfTables(KernelBackend& backend, std::span<const Call> calls, Launch launch) {
  const auto groups = GroupsOf<Attributes>(calls, [](Attributes attributes) {
    attributes.weight_decay = 0;
    return attributes;
  });
  return [&backend, groups, launch, what = calls[0].operation](
             const KernelContext& context, std::span<const KernelArguments> all) {
    for (UpdateGroup<Attributes>& group : *groups) {
      GrowingTable<UpdateEntry> table;
      for (size_t i = 0; i < group.each.size(); ++i) {
        const UpdateOperands of(all[group.first + i]);
        CheckTypes(what.c_str(), of);
        const Tensor first = of.state_or_none(0), second = of.state_or_none(1);
        const int64_t n = of.value.elements();
        table.Append({.value = of.value.data<float>(),
                      .gradient = of.gradient.data<float>(),
                      .first = DataOrNull<float>(first),
                      .second = DataOrNull<float>(second),
                      .compute = DataOrNull<Bf16>(of.copy),
                      .n = n,
                      .weight_decay = static_cast<float>(group.each[i].weight_decay)},
                     UpdateChunks(n), {&of.value, &of.gradient, &first, &second, &of.copy});
      }
      const cudaStream_t stream = backend.Begin();
      const void* const entries = backend.Upload(table.bytes(), &group.table, what.c_str());
      if (entries == nullptr) return;
      backend.Note(launch(stream,
                          UpdateTable{static_cast<const UpdateEntry*>(entries), table.count(),
                                      table.chunks, table.wide},
                          group.each[0], *context.update),
                   what.c_str());
    }
  };
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_UPDATES_UPDATE_TABLES_H_
