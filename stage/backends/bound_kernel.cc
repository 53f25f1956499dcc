#include "stage/backends/bound_kernel.h"

#include <map>
#include <memory>
#include <utility>

#include "base/errors/status.h"
#include "operations/call_types.h"

namespace stagecoach {
namespace {

class BoundKernels {
 public:
  BoundKernels(Backend& backend, Call call, CallTypes types, DType activation)
      : backend_(backend),
        call_(std::move(call)),
        types_(std::move(types)),
        activation_(activation) {}

  // Names that the call does not have make no difference.
  absl::StatusOr<const Kernel*> For(Lengths lengths) {
    for (const Length length : kNamedLengths) {
      if (!Has(length)) lengths.Set(length, 0);
    }
    const auto found = kernels_.find(lengths);
    if (found != kernels_.end()) return &found->second;
    ASSIGN_OR_RETURN(Kernel kernel, backend_.Prepare(call_,
                                                     {.inputs = Bound(types_.inputs, lengths),
                                                      .outputs = Bound(types_.outputs, lengths),
                                                      .adds = Bound(types_.adds, lengths)},
                                                     activation_));
    return &kernels_.emplace(lengths, std::move(kernel)).first->second;
  }

  Backend& backend() { return backend_; }

 private:
  bool Has(Length length) const {
    for (const auto* types : {&types_.inputs, &types_.outputs}) {
      for (const ValueType& type : *types) {
        for (int i = 0; i < type.shape.rank(); ++i) {
          if (type.shape.extent(i).length == length) return true;
        }
      }
    }
    return false;
  }

  Backend& backend_;
  const Call call_;
  const CallTypes types_;
  const DType activation_;
  std::map<Lengths, Kernel> kernels_;
};

}  // namespace

absl::StatusOr<Kernel> PrepareBound(Backend& backend, const Call& call, const CallTypes& types,
                                    DType activation) {
  if (!HaveLengths(types.inputs) && !HaveLengths(types.outputs)) {
    return backend.Prepare(call, types, activation);
  }
  auto kernels = std::make_shared<BoundKernels>(backend, call, types, activation);
  RETURN_IF_ERROR(kernels->For(Lengths()).status());
  return Kernel([kernels](const KernelContext& context, const KernelArguments& arguments) {
    const absl::StatusOr<const Kernel*> kernel = kernels->For(context.run.lengths);
    if (!kernel.ok()) return kernels->backend().NoteUnprepared(kernel.status());
    (**kernel)(context, arguments);
  });
}

}  // namespace stagecoach
