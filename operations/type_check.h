// Errors of operations for a call that does not fit: one sentence with the operand's name, its type
// and the requirement.
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
// Checks that it is an activation of samples with at least that rank.
absl::Status CheckActivation(std::string_view operand, const ValueType& is, int least_rank);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_TYPE_CHECK_H_
