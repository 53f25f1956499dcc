// LayerLists: the lists of calls that a stage runs of one layer, derived from its graph. The stage
// knows no layer by name.
// Ownership: plain values.
// Units and shapes: ids of the lists index LayerLists::values, which begins with the graph's own.
// See:       docs/ARCHITECTURE.md, "Lists"; GPipe, section 2.1: the backward by automatic
//            differentiation.
#ifndef STAGECOACH_NETWORK_LISTS_LISTS_H_
#define STAGECOACH_NETWORK_LISTS_LISTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/lists/layer_graph.h"

namespace stagecoach {

struct ListedCall {
  Call call;
  std::optional<int> in_place;   // output 0 takes the memory of this input
  std::vector<ValueId> dropped;  // no call reads them after this one
};
struct CallList {
  std::vector<ListedCall> calls;
  std::vector<ValueId> unused;  // inputs that no call reads
};

// LayerLists: lists of one layer. Beside the stash, a backward takes a gradient for each output and
// gives one for each input, if these have one. The others are invalid.
struct LayerLists {
  std::vector<Value> values;
  std::vector<ValueId> inputs, parameters, states, outputs;
  std::vector<ValueId> evaluation_outputs;
  std::vector<ValueId> output_gradients, input_gradients;
  std::vector<ValueId> parameter_gradients;  // calls add to these; invalid if not trained
  std::vector<ValueId> accumulators;         // folds change these: zero when a step begins
  std::vector<ValueId> stash;                // kept from forward to backward
  std::vector<ValueId> weight_stash;         // kept from the input part to the weight part

  CallList forward;        // keeps the stash
  CallList forward_alone;  // keeps nothing but the outputs: it will be recomputed
  CallList evaluation;     // dropout is the identity
  CallList backward;       // both parts, the weight gradients as soon as that frees memory
  CallList input_gradient;
  CallList weight_gradient;  // and the folds of the micro-batch into accumulators
  CallList commit;           // when a step is applied: from the accumulators into the states

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id.value)]; }
  CallTypes TypesOf(const Call& call) const;
};

// INVALID_ARGUMENT naming the operation: the calls of the graph fit each other, but it cannot be
// trained. For example, a gradient must go through an operation that has none.
absl::StatusOr<LayerLists> TryDifferentiate(const LayerGraph& graph);
// As TryDifferentiate, for a graph that can be trained.
LayerLists Differentiate(const LayerGraph& graph);

// Fewest samples that a micro-batch must have in training.
int64_t LeastSamples(const LayerLists& lists);

// A text for people and for golden files.
std::string FormatLists(const LayerLists& lists);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_LISTS_H_
