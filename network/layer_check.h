// CheckLayer: may a layer that was written elsewhere be built? Its calls fit each other already
// (network/lists/layer_graph.h). It checks the other rules that the kinds of network/layers keep.
// Errors: INVALID_ARGUMENT with what is wrong.
// Threads: any.
#ifndef STAGECOACH_NETWORK_LAYER_CHECK_H_
#define STAGECOACH_NETWORK_LAYER_CHECK_H_

#include "absl/status/status.h"
#include "network/layer_builder.h"

namespace stagecoach {

// Numbers of elements stay inside 64 bits in every sum and product of the planner.
absl::Status CheckArrayType(const ValueType& type);

absl::Status CheckLayer(const BuiltLayer& layer);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYER_CHECK_H_
