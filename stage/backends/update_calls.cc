#include "stage/backends/update_calls.h"

#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

// All float32, but for copies that operations read as activations.
std::vector<ValueType> TypesOf(const Tensors& tensors, DType* activation) {
  std::vector<ValueType> types;
  for (const Tensor& tensor : tensors) {
    const bool copy = tensor.dtype() != DType::kF32;
    if (copy) *activation = tensor.dtype();
    types.push_back(WeightType(copy ? Element::kActivation : Element::kFloat32, tensor.shape()));
  }
  return types;
}

}  // namespace

PreparedUpdates::PreparedUpdates(std::vector<UpdateCall> calls) : calls_(std::move(calls)) {
  for (UpdateCall& call : calls_) {
    inputs_.push_back(PlacesOf(call.inputs));
    outputs_.emplace_back();
    adds_.push_back(PlacesOf(call.adds));
  }
  for (size_t i = 0; i < calls_.size(); ++i) {
    arguments_.push_back({inputs_[i], outputs_[i], adds_[i]});
  }
}

absl::StatusOr<PreparedUpdates> PreparedUpdates::Prepare(Backend& backend,
                                                         std::vector<UpdateCall> given) {
  PreparedUpdates made(std::move(given));
  if (made.calls_.empty()) return made;
  std::vector<Call> calls;
  std::vector<CallTypes> types;
  DType activation = DType::kF32;
  for (const UpdateCall& call : made.calls_) {
    types.push_back({TypesOf(call.inputs, &activation), {}, TypesOf(call.adds, &activation)});
    calls.push_back({.operation = call.operation, .attributes = call.attributes});
    const auto outputs = OperationNamed(call.operation)
                             .Types(call.attributes, types.back().inputs, types.back().adds);
    CHECK(outputs.ok()) << outputs.status();
  }
  ASSIGN_OR_RETURN(made.kernel_, backend.PrepareAll(calls, types, activation));
  return made;
}

void PreparedUpdates::Run(const UpdateNumbers& numbers) const {
  if (calls_.empty()) return;
  const ForwardContext run{};
  kernel_({run, 0, &numbers}, arguments_);
}

}  // namespace stagecoach
