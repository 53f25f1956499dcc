// The calls of a layer's backward. They are in the order in which the rules of the operations wrote
// them: from the forward's last call to its first. Private to network/.
#ifndef STAGECOACH_NETWORK_LISTS_GRADIENT_CALLS_H_
#define STAGECOACH_NETWORK_LISTS_GRADIENT_CALLS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "network/lists/layer_graph.h"

namespace stagecoach {

struct GradientCalls {
  std::vector<Value> values;  // the graph's own, then those of the backward
  std::vector<ValueId> output_gradients, input_gradients;  // invalid if there is none
  std::vector<ValueId> parameter_gradients;                // invalid if no call adds to one
  std::vector<Call> calls;
};

// Writes gradients only of needed values: they depend on a trained parameter, or on an activation
// that comes in. If one call computes the gradients of a trained and a constant parameter, the
// constant one has an unread gradient.
// Several shares of one value's gradient are summed in descending order of the calls that use it.
// The gradient that arrives from the layers behind is one share, the first.
// INVALID_ARGUMENT naming the operation: a call lacks a gradient that is needed.
absl::StatusOr<GradientCalls> WriteGradientCalls(const LayerGraph& graph);

// The table of calls that one kernel does together: docs/ARCHITECTURE.md, "Lists". The calls alone
// decide which rewrite applies, so bits depend on no back end and no cut.
void FuseGradientCalls(const LayerGraph& graph, GradientCalls* backward);

// The joint backward: input gradients in their order. A weight gradient precedes the next input
// gradient only if it is the last reader of something that the input gradient does not read.
std::vector<Call> JointOrder(const std::vector<Call>& input_part,
                             const std::vector<Call>& weight_part,
                             const std::vector<ValueId>& kept);

// Joins an input gradient and the weight gradient of the same operands right behind it, if one
// operation is both. Only neighbours are joined. So no gradient is added in another order, and
// nothing is held for longer.
std::vector<Call> JoinCalls(std::vector<Call> calls);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_GRADIENT_CALLS_H_
