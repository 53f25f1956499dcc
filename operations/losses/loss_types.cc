#include "operations/losses/loss_types.h"

#include "operations/type_check.h"

namespace stagecoach {

ValueType LossWeightsType(const ValueType& targets) {
  const bool ids = targets.element == Element::kIds;
  return {Element::kFloat32, Leading::kSamples, ids ? targets.shape : Shape{}};
}

absl::Status CheckLossOperands(std::string_view operation, std::span<const ValueType> inputs,
                               std::string_view output, std::string_view targets,
                               const LossForm& form) {
  if (form.weighted && form.gradient) {
    return CheckOperands(operation, inputs, {output, targets, "weights", "scale"});
  }
  if (form.weighted) return CheckOperands(operation, inputs, {output, targets, "weights"});
  if (form.gradient) return CheckOperands(operation, inputs, {output, targets, "scale"});
  return CheckOperands(operation, inputs, {output, targets});
}

absl::Status CheckLossTypes(std::span<const ValueType> inputs, const LossForm& form) {
  if (form.weighted) {
    absl::Status status = CheckType("weights", inputs[2], LossWeightsType(inputs[1]));
    if (!status.ok()) return status;
  }
  return form.gradient ? CheckType("scale", inputs[ScalePlace(form)], ScaleType())
                       : absl::OkStatus();
}

}  // namespace stagecoach
