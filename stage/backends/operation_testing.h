// For tests and benchmarks: one call of an operation on given tensors, on any back end.
// Ownership: the tensors are held; the back end is borrowed.
// Errors:    CHECKs that the back end has a kernel for the call.
#ifndef STAGECOACH_STAGE_BACKENDS_OPERATION_TESTING_H_
#define STAGECOACH_STAGE_BACKENDS_OPERATION_TESTING_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "operations/attributes.h"
#include "operations/operation.h"
#include "stage/backends/backend.h"
#include "stage/backends/update_calls.h"

namespace stagecoach {

// An operand's tensor. Whole(tensor): the same for all samples, as a weight.
struct OperandTensor {
  Tensor tensor;
  bool whole = false;
  OperandTensor(Tensor tensor)
      : tensor(std::move(tensor)) {}  // NOLINT: a list of tensors is enough
  OperandTensor(Tensor tensor, bool whole) : tensor(std::move(tensor)), whole(whole) {}
};
inline OperandTensor Whole(Tensor tensor) { return {std::move(tensor), true}; }

struct TensorCall {
  std::string operation;
  Attributes attributes = {};
  std::vector<OperandTensor> inputs;
  Tensors outputs = {}, adds = {};
  int64_t samples = 1;       // their rows lie one after the other in tensors that are not whole
  RandomStream stream = {};  // if the call draws: the attribute `draw` is its field `operation`
};

inline ValueType TypeOfTensor(const Tensor& tensor, bool whole, int64_t samples, DType activation) {
  std::vector<int64_t> extents = tensor.shape().extents();
  if (!whole && !extents.empty()) extents[0] /= samples;
  ValueType type{Element::kActivation, whole ? Leading::kOne : Leading::kSamples,
                 Shape(std::move(extents))};
  if (tensor.dtype() == DType::kI32) type.element = Element::kIds;
  if (tensor.dtype() == DType::kF64) type.element = Element::kFloat64;
  if (tensor.dtype() == DType::kF32 && activation != DType::kF32) type.element = Element::kFloat32;
  return type;
}

// The prepared call, to be run many times.
inline std::function<void()> PrepareOn(Backend& backend, const TensorCall& call) {
  DType activation = DType::kF32;  // unless one of them is narrow
  Tensors inputs;
  for (const OperandTensor& input : call.inputs) {
    inputs.push_back(input.tensor);
    if (input.tensor.dtype() == DType::kBF16) activation = DType::kBF16;
  }
  CallTypes types;
  for (const OperandTensor& input : call.inputs) {
    types.inputs.push_back(TypeOfTensor(input.tensor, input.whole, call.samples, activation));
  }
  for (const Tensor& output : call.outputs) {
    types.outputs.push_back(TypeOfTensor(output, false, call.samples, activation));
  }
  for (const Tensor& sum : call.adds) {
    const bool narrow = sum.dtype() == DType::kBF16;
    types.adds.push_back(
        WeightType(narrow ? Element::kActivation : Element::kFloat32, sum.shape()));
  }
  absl::StatusOr<Kernel> kernel = backend.Prepare(
      {.operation = call.operation, .attributes = call.attributes}, types, activation);
  CHECK_OK(kernel.status());
  struct Held {
    Tensors inputs, outputs, adds;
  };
  auto held = std::make_shared<Held>(Held{std::move(inputs), call.outputs, call.adds});
  const RandomStream& stream = call.stream;
  const ForwardContext run{.seed = stream.seed,
                           .step = stream.step,
                           .micro_batch = MicroBatchId(static_cast<int32_t>(stream.micro_batch)),
                           .sequences = call.samples};
  return [held, run, layer = stream.layer, kernel = *std::move(kernel), in = PlacesOf(held->inputs),
          out = PlacesOf(held->outputs), adds = PlacesOf(held->adds)] {
    kernel({run, layer}, {in, out, adds});
  };
}

inline void RunOn(Backend& backend, const TensorCall& call) { PrepareOn(backend, call)(); }

// One call of an update.
inline void UpdateOn(Backend& backend, UpdateCall call, const UpdateNumbers& numbers) {
  const absl::StatusOr<PreparedUpdates> update =
      PreparedUpdates::Prepare(backend, {std::move(call)});
  CHECK_OK(update.status());
  update->Run(numbers);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_OPERATION_TESTING_H_
