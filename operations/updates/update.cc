#include "operations/updates/update.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "operations/type_check.h"

namespace stagecoach {

absl::Status CheckUpdateOperands(std::string_view operation, std::span<const ValueType> inputs,
                                 std::span<const ValueType> adds,
                                 const std::vector<UpdateState>& states) {
  const size_t own = 2 + states.size();
  if (!inputs.empty() || (adds.size() != own && adds.size() != own + 1)) {
    std::string takes = "gradient, value";
    for (const UpdateState& state : states) {
      absl::StrAppend(&takes, ", ", std::string(state.name));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(operation), " reads ", inputs.size(), " and changes ", adds.size(),
                     " operands; it takes none to read, and to change ", takes, " [, copy]"));
  }
  const Shape& shape = adds[1].shape;
  const auto check = [&](std::string_view name, size_t i, Element element, const Shape& of) {
    return CheckType(name, adds[i], WeightType(element, of));
  };
  absl::Status status = check("gradient", 0, Element::kFloat32, shape);
  if (status.ok()) status = check("value", 1, Element::kFloat32, shape);
  for (size_t i = 0; status.ok() && i < states.size(); ++i) {
    status = check(states[i].name, 2 + i, Element::kFloat32, states[i].shape);
  }
  if (status.ok() && adds.size() > own) status = check("copy", own, Element::kActivation, shape);
  return status;
}

}  // namespace stagecoach
