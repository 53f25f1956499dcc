// EvaluationCalls: the calls of a layer's graph in the forms that they have in an evaluation.
// Threads: pure.
#ifndef STAGECOACH_NETWORK_LISTS_EVALUATION_CALLS_H_
#define STAGECOACH_NETWORK_LISTS_EVALUATION_CALLS_H_

#include <vector>

#include "network/lists/lists.h"

namespace stagecoach {

// Leaves out calls that are the identity: readers of their output read their input. Appends to
// `outputs` the graph's outputs, replaced likewise.
std::vector<Call> EvaluationCalls(const LayerGraph& graph, std::vector<ValueId>* outputs);

// The lists of a graph that is never trained: all but `evaluation` are empty.
LayerLists EvaluationLists(const LayerGraph& graph);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_EVALUATION_CALLS_H_
