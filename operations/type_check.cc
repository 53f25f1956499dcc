#include "operations/type_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stagecoach {

absl::Status CheckOperands(std::string_view operation, std::span<const ValueType> operands,
                           std::initializer_list<std::string_view> names) {
  if (operands.size() == names.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(operation), " has ", operands.size(), " operands; it takes ", names.size(), ": ",
      absl::StrJoin(std::vector<std::string>(names.begin(), names.end()), ", ")));
}

absl::Status CheckType(std::string_view operand, const ValueType& is, const ValueType& expected) {
  if (is == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(operand), " is ", FormatType(is),
                                                 "; must be ", FormatType(expected)));
}

absl::Status CheckActivation(std::string_view operand, const ValueType& is, int least_rank) {
  if (is.element == Element::kActivation && is.leading == Leading::kSamples &&
      is.shape.rank() >= least_rank) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(std::string(operand), " is ", FormatType(is),
                                                 "; must be an activation of samples with ",
                                                 least_rank, " or more extents"));
}

}  // namespace stagecoach
