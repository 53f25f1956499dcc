// The calls that change a layer's states, in the order of the forward's calls. Private to network/.
#ifndef STAGECOACH_NETWORK_LISTS_UPDATE_CALLS_H_
#define STAGECOACH_NETWORK_LISTS_UPDATE_CALLS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "network/lists/layer_graph.h"

namespace stagecoach {

struct UpdateCalls {
  std::vector<ValueId> accumulators;
  std::vector<Call> folds;    // once per micro-batch
  std::vector<Call> commits;  // when a step is applied
};

// Adds accumulators to the values. INVALID_ARGUMENT naming the operation: it would change a value
// that is no state.
absl::StatusOr<UpdateCalls> WriteUpdateCalls(const LayerGraph& graph, std::vector<Value>* values);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_UPDATE_CALLS_H_
