// TypesOfCall: types of a call's outputs, where extents may have names. Back ends prepare kernels for
// types with values in place of the names (stage/backends/bound_kernel.h). So an operation must give
// the same types either way, and no name may get lost.
// Threads: any.
// Errors:  Operation::Types'. INVALID_ARGUMENT if the operation does not take named extents, as a
//          reshape into numbers.
#ifndef STAGECOACH_OPERATIONS_CALL_TYPES_H_
#define STAGECOACH_OPERATIONS_CALL_TYPES_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "operations/operation.h"

namespace stagecoach {

absl::StatusOr<std::vector<ValueType>> TypesOfCall(const Operation& operation,
                                                   const Attributes& attributes,
                                                   std::span<const ValueType> inputs,
                                                   std::span<const ValueType> adds);

std::vector<ValueType> Bound(std::span<const ValueType> types, const Lengths& lengths);
bool HaveLengths(std::span<const ValueType> types);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CALL_TYPES_H_
