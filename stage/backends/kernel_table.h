// KernelTable: the operations that a back end has kernels for. Each back end has one, filled from
// its folder kernels/. If that lacks a file for one of STAGECOACH_OPERATIONS, the program does not
// link. A joint operation needs no kernel of its own if its parts have theirs.
//            An operation may have a kernel for many calls at once instead of one for each.
// Threads:   any.
// Errors:    Prepare answers UNIMPLEMENTED for an operation without a kernel, naming it and the
//            back end. CHECKs that no operation has two kernels, and that the catalogue has each
//            kernel's operation.
#ifndef STAGECOACH_STAGE_BACKENDS_KERNEL_TABLE_H_
#define STAGECOACH_STAGE_BACKENDS_KERNEL_TABLE_H_

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/listed.h"
#include "operations/catalogue.h"
#include "operations/joint.h"
#include "stage/backends/backend.h"
#include "stage/backends/kernel.h"

namespace stagecoach {

inline absl::Status NoKernel(const Call& call, std::string_view back_end) {
  return absl::UnimplementedError(absl::StrCat("the ", std::string(back_end),
                                               " back end has no kernel for operation \"",
                                               call.operation, "\"; use another device"));
}

// The attributes of a call that was checked.
template <typename Struct>
Struct AttributesOf(const Call& call) {
  absl::StatusOr<Struct> attributes = FromAttributes<Struct>(call.attributes);
  CHECK(attributes.ok()) << call.operation << ": " << attributes.status();
  return *attributes;
}

// Each kernel file of a back end gives one list. `Device` is the back end's class for kernels.
template <typename Device>
struct KernelEntry {
  std::string_view operation;
  absl::StatusOr<Kernel> (*prepare)(Device& device, const Call& call, const CallTypes& types,
                                    DType activation);  // null if there is prepare_all
  absl::StatusOr<KernelOfAll> (*prepare_all)(Device& device, std::span<const Call> calls) = nullptr;
};
template <typename Device>
using KernelListOf = std::vector<KernelEntry<Device>>;

// A kernel for a joint operation (operations/joint.h), if a back end has none that does both parts
// at once.
inline Kernel OneAfterTheOther(Kernel input_gradient, Kernel weight_gradient,
                               const std::vector<int>& weight_inputs) {
  return [input_gradient = std::move(input_gradient), weight_gradient = std::move(weight_gradient),
          weight_inputs](const KernelContext& context, const KernelArguments& a) {
    const Operands none;
    input_gradient(context, {a.inputs, a.outputs, none});
    std::vector<Tensor*> read;
    for (const int i : weight_inputs) read.push_back(&a.inputs.place(static_cast<size_t>(i)));
    weight_gradient(context, {Operands(std::move(read)), none, a.adds});
  };
}

template <typename Device>
class KernelTable {
 public:
  KernelTable(std::string_view back_end, const std::vector<KernelListOf<Device>>& lists)
      : back_end_(back_end) {
    for (const KernelListOf<Device>& list : lists) {
      for (const KernelEntry<Device>& entry : list) {
        OperationNamed(entry.operation);
        CHECK(entries_.emplace(entry.operation, entry).second)
            << back_end << " has two kernels for " << entry.operation;
      }
    }
  }

  absl::StatusOr<Kernel> Prepare(Device& device, const Call& call, const CallTypes& types,
                                 DType activation) const {
    const auto found = entries_.find(call.operation);
    if (found != entries_.end()) {
      if (found->second.prepare == nullptr)
        return PrepareOne(*found->second.prepare_all, device, call);
      return found->second.prepare(device, call, types, activation);
    }
    if (!Has(call.operation)) return NoKernel(call, back_end_);
    return PrepareParts(device, call, types, activation);
  }
  // Prepares many calls of an operation at once; null if each has a kernel of its own.
  auto AllAtOnce(std::string_view operation) const {
    const auto found = entries_.find(operation);
    return found == entries_.end() ? nullptr : found->second.prepare_all;
  }
  // Whether there is a kernel for the operation, or for each of its parts.
  bool Has(std::string_view operation) const {
    if (entries_.contains(operation)) return true;
    const absl::StatusOr<const Operation*> known = FindOperation(operation);
    const JointParts* const parts = known.ok() ? (*known)->Parts() : nullptr;
    return parts != nullptr && entries_.contains(parts->input_gradient) &&
           entries_.contains(parts->weight_gradient);
  }
  // UNIMPLEMENTED as from Prepare.
  absl::Status Check(const Call& call) const {
    return Has(call.operation) ? absl::OkStatus() : NoKernel(call, back_end_);
  }
  // Both sorted by name: the catalogue's operations that it has, and the others.
  std::vector<std::string> operations() const { return Names(true); }
  std::vector<std::string> WithoutKernels() const { return Names(false); }

 private:
  std::vector<std::string> Names(bool has) const {
    std::vector<std::string> names;
    for (const Operation* operation : AllOperations()) {
      if (Has(operation->name()) == has) names.emplace_back(operation->name());
    }
    return names;
  }
  static absl::StatusOr<Kernel> PrepareOne(
      absl::StatusOr<KernelOfAll> (&prepare_all)(Device&, std::span<const Call>), Device& device,
      const Call& call) {
    absl::StatusOr<KernelOfAll> all = prepare_all(device, std::span<const Call>(&call, 1));
    if (!all.ok()) return all.status();
    return [kernel = *std::move(all)](const KernelContext& context, const KernelArguments& one) {
      kernel(context, std::span<const KernelArguments>(&one, 1));
    };
  }
  absl::StatusOr<Kernel> PrepareParts(Device& device, const Call& call, const CallTypes& types,
                                      DType activation) const {
    const JointParts& parts = *OperationNamed(call.operation).Parts();
    const Call input{.operation = std::string(parts.input_gradient), .attributes = call.attributes};
    const Call weight{.operation = std::string(parts.weight_gradient)};
    absl::StatusOr<Kernel> first =
        Prepare(device, input, {types.inputs, types.outputs, {}}, activation);
    if (!first.ok()) return first;
    absl::StatusOr<Kernel> second = Prepare(device, weight, WeightPartOf(parts, types), activation);
    if (!second.ok()) return second;
    return OneAfterTheOther(*std::move(first), *std::move(second), parts.weight_inputs);
  }

  const std::string_view back_end_;
  std::map<std::string_view, KernelEntry<Device>, std::less<>> entries_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_KERNEL_TABLE_H_
