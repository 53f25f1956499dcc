// Catalogue: the one list of all operations.
// Threads: any. Errors: FindOperation answers NOT_FOUND with the nearest known name.
#ifndef STAGECOACH_OPERATIONS_CATALOGUE_H_
#define STAGECOACH_OPERATIONS_CATALOGUE_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "operations/operation.h"

namespace stagecoach {

const std::vector<const Operation*>& AllOperations();  // by name
absl::StatusOr<const Operation*> FindOperation(std::string_view name);
// Of a call that was checked: CHECKs that there is such an operation.
const Operation& OperationNamed(std::string_view name);

// One function an operation file; each gives the operation and those of its gradient.
using OperationList = std::vector<const Operation*>;
OperationList ActivationOperations();
OperationList AddOperations();
OperationList AttentionOperations();
OperationList BatchNormOperations();
OperationList ConcatenateOperations();
OperationList ConvolutionOperations();
OperationList CrossEntropyOperations();
OperationList DropPathOperations();
OperationList DropoutOperations();
OperationList EmbeddingOperations();
OperationList GroupNormOperations();
OperationList HeadNormOperations();
OperationList LayerNormOperations();
OperationList LinearOperations();
OperationList MeanSquaredErrorOperations();
OperationList PadOperations();
OperationList PoolOperations();
OperationList PrependTokenOperations();
OperationList ReshapeOperations();
OperationList RmsNormOperations();
OperationList RotaryOperations();
OperationList SwigluOperations();
OperationList UpsampleOperations();

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CATALOGUE_H_
