// A tensor with its name in checkpoints and snapshots, the same for every number of stages.
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
