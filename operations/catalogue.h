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
// The operation of a checked call: CHECKs that it exists.
const Operation& OperationNamed(std::string_view name);

// A file has an operation and those of its gradient: operations/pointwise/add.cc defines
// `OperationList AddOperations()`. A file of the same name in each back end has the kernels
// (stage/backends/kernel_table.h).
using OperationList = std::vector<const Operation*>;
#define STAGECOACH_OPERATIONS                                                                   \
  Activations, Add, AddSinusoids, Attention, BatchNorm, CachedAttention, Clip, Concatenate,     \
      Convolution, CrossAttention, CrossEntropy, DropPath, Dropout, Embedding, GroupNorm,       \
      HeadNorm, LayerNorm, Linear, MeanSquaredError, Pad, Pool, PrependToken, Reshape, RmsNorm, \
      Rotary, Scale, Swiglu, Upsample, AdafactorUpdate, AdamWUpdate, AverageUpdate, LambUpdate, \
      RmsPropUpdate, SgdUpdate

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CATALOGUE_H_
