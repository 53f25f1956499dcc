#include "operations/joint.h"

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

std::vector<ValueType> ReadByWeightPart(const JointParts& parts,
                                        std::span<const ValueType> inputs) {
  std::vector<ValueType> read;
  for (const int i : parts.weight_inputs) read.push_back(inputs[static_cast<size_t>(i)]);
  return read;
}

}  // namespace

absl::Status JointOperation::CheckAttributes(const Attributes& attributes) const {
  return OperationNamed(parts_.input_gradient).CheckAttributes(attributes);
}

absl::StatusOr<std::vector<ValueType>> JointOperation::Types(
    const Attributes& attributes, std::span<const ValueType> inputs,
    std::span<const ValueType> adds) const {
  absl::StatusOr<std::vector<ValueType>> outputs =
      OperationNamed(parts_.input_gradient).Types(attributes, inputs, {});
  if (!outputs.ok()) return outputs;
  const absl::Status weights = OperationNamed(parts_.weight_gradient)
                                   .Types({}, ReadByWeightPart(parts_, inputs), adds)
                                   .status();
  if (!weights.ok()) return weights;
  return outputs;
}

Cost JointOperation::CostOf(const Attributes& attributes, const CallTypes& types,
                            int64_t samples) const {
  const CallTypes input_part = {types.inputs, types.outputs, {}};
  const Cost input = OperationNamed(parts_.input_gradient).CostOf(attributes, input_part, samples);
  const Cost weight =
      OperationNamed(parts_.weight_gradient).CostOf({}, WeightPartOf(parts_, types), samples);
  return {input.products + weight.products, input.flops + weight.flops};
}

std::optional<Attributes> JointOperation::WithSum(const Attributes& attributes) const {
  return OperationNamed(parts_.input_gradient).WithSum(attributes);
}

CallTypes WeightPartOf(const JointParts& parts, const CallTypes& types) {
  return {ReadByWeightPart(parts, types.inputs), {}, types.adds};
}

}  // namespace stagecoach
