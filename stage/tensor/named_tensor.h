// A tensor under the name, the same for every number of stages, that checkpoints and snapshots have
// for it.
#ifndef STAGECOACH_STAGE_TENSOR_NAMED_TENSOR_H_
#define STAGECOACH_STAGE_TENSOR_NAMED_TENSOR_H_

#include <string>

#include "stage/tensor/tensor.h"

namespace stagecoach {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TENSOR_NAMED_TENSOR_H_
