// LayerState: an array that a layer keeps beside its parameters (network/state.h), in a stage's
// memory.
// Ownership: the LayerRunner that allocated it owns it.
// Threads:   executor thread only.
#ifndef STAGECOACH_STAGE_LAYERS_LAYER_STATE_H_
#define STAGECOACH_STAGE_LAYERS_LAYER_STATE_H_

#include "network/state.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

struct LayerState {
  StateSpec spec;
  Tensor value;  // F32
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_LAYER_STATE_H_
