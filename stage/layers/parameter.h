// Parameter: one trainable array in a stage's memory. LayerState: an array that a layer keeps
// beside its parameters (network/state.h).
// Ownership: the LayerRunner that allocated them owns them.
// Threads:   executor thread only.
#ifndef STAGECOACH_STAGE_LAYERS_PARAMETER_H_
#define STAGECOACH_STAGE_LAYERS_PARAMETER_H_

#include "network/parameter.h"
#include "network/state.h"
#include "operations/value_type.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

// The base of adapters (network/passes/lora.h) is kept in the type that operations read: value and
// compute are one tensor. A tied parameter (network/passes/tied.h) has a gradient of its own. Its
// value and compute are one tensor too, in the type that operations read. If the owner is in the same
// cell, it is the owner's tensor. Otherwise it is a copy for all users in this cell.
struct Parameter {
  ParameterSpec spec;
  Tensor value;     // F32, the master
  Tensor gradient;  // F32, same shape; zeroed after each apply. None: the parameter is frozen
  // The values that operations read as activations. It is value itself (the same buffer), or in
  // bfloat16 a BF16 copy. The optimizer writes the copy with each apply, Cell::RefreshCompute after
  // any other change of value. Statistics are computed with value.
  Tensor compute;
};

struct LayerState {
  StateSpec spec;
  Tensor value;  // F32
};

inline const Tensor& ReadByOperations(const Parameter& parameter, const ValueType& type) {
  return type.element == Element::kActivation ? parameter.compute : parameter.value;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_PARAMETER_H_
