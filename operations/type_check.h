// What operations say when a call does not fit: one sentence, with the operand's name, its type and
// what would be right.
// Errors: INVALID_ARGUMENT.
#ifndef STAGECOACH_OPERATIONS_TYPE_CHECK_H_
#define STAGECOACH_OPERATIONS_TYPE_CHECK_H_

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "operations/value_type.h"

namespace stagecoach {

// `names` are the operands in order.
absl::Status CheckOperands(std::string_view operation, std::span<const ValueType> operands,
                           std::initializer_list<std::string_view> names);
absl::Status CheckType(std::string_view operand, const ValueType& is, const ValueType& expected);
// An activation of samples with that rank at least.
absl::Status CheckActivation(std::string_view operand, const ValueType& is, int least_rank);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_TYPE_CHECK_H_
