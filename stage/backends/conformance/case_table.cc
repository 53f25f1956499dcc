#include "stage/backends/conformance/case_table.h"

#include <utility>

#include "base/errors/check.h"

namespace stagecoach::conformance {
Tensors CaseTable::at(const std::vector<ValueId>& ids) const {
  Tensors tensors;
  for (const ValueId id : ids) tensors.push_back(at(id));
  return tensors;
}

Tensor CaseTable::Make(const ValueType& type, const std::vector<float>& values) {
  const Shape shape = RuntimeShape(type, calls_.of.call.samples);
  switch (type.element) {
    case Element::kActivation:
      return bench_.ActivationFrom(values, shape);
    case Element::kFloat32:
      return bench_.From(values, shape);
    case Element::kFloat64:
      return bench_.Float64From(values, shape);
    case Element::kIds:
      return bench_.IdsFrom(std::vector<int32_t>(values.begin(), values.end()), shape);
  }
  CHECK(false) << FormatType(type);
  return Tensor();
}

Tensor CaseTable::Blank(const ValueType& type) {
  const Shape shape = RuntimeShape(type, calls_.of.call.samples);
  if (type.element == Element::kActivation) return bench_.BlankActivation(shape);
  return bench_.Blank(shape, ElementDType(type.element, DType::kF32));
}

std::vector<float> CaseTable::Read(const Tensor& tensor) {
  const Output output = bench_.Read("", tensor);
  return {output.values.begin(), output.values.end()};
}

void CaseTable::SetGiven() {
  for (const auto* ids : {&calls_.operands, &calls_.output_gradients, &calls_.operand_gradients}) {
    for (const ValueId id : *ids) {
      if (id.valid() && !at(id).valid()) Set(id, FillOf(calls_, id));
    }
  }
  for (const Call& call : calls_.All()) {
    for (const ValueId id : call.adds) {
      if (!at(id).valid()) Set(id, FillOf(calls_, id));
    }
  }
}

void CaseTable::Run(const Call& call) {
  const CallTypes types = calls_.TypesOf(call);
  Tensors outputs;
  for (const ValueType& type : types.outputs) outputs.push_back(Blank(type));
  outputs = RunKernel(call, types, at(call.inputs), std::move(outputs), at(call.adds));
  for (size_t i = 0; i < outputs.size(); ++i) {
    table_[static_cast<size_t>(call.outputs[i].value)] = std::move(outputs[i]);
  }
}

void CaseTable::RoundOutputs(const Call& call) {
  for (const ValueId id : call.outputs) {
    Tensor& output = table_[static_cast<size_t>(id.value)];
    if (calls_.type(id).element == Element::kActivation) output = bench_.AsRead(output);
  }
}

Tensors CaseTable::RunOn(const Call& call, const CallTypes& types, const Tensors& inputs,
                         Tensor output) {
  Tensors outputs;
  for (const ValueType& type : types.outputs) outputs.push_back(Blank(type));
  if (output.valid()) outputs[0] = std::move(output);
  return RunKernel(call, types, inputs, std::move(outputs), at(call.adds));
}

Tensors CaseTable::RunKernel(const Call& call, const CallTypes& types, Tensors inputs,
                             Tensors outputs, Tensors adds) {
  Backend& backend = bench_.backend();
  const bool narrow = bench_.elements() == Elements::kBfloat16;
  const absl::StatusOr<Kernel> kernel =
      backend.Prepare(call, types, narrow ? DType::kBF16 : DType::kF32);
  CHECK_OK(kernel.status());
  const RandomStream stream = TestStream();
  const ForwardContext run{.seed = stream.seed,
                           .step = stream.step,
                           .micro_batch = MicroBatchId(static_cast<int32_t>(stream.micro_batch)),
                           .sequences = calls_.of.call.samples};
  (*kernel)({run, stream.layer}, {PlacesOf(inputs), PlacesOf(outputs), PlacesOf(adds)});
  CHECK_OK(backend.Synchronize());  // the arguments end with this call
  return outputs;
}

}  // namespace stagecoach::conformance
