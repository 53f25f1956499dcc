#include "network/lists/evaluation_calls.h"

#include <utility>

#include "network/lists/liveness.h"
#include "operations/catalogue.h"

namespace stagecoach {

std::vector<Call> EvaluationCalls(const LayerGraph& graph, std::vector<ValueId>* outputs) {
  std::vector<ValueId> stands_for;
  for (int i = 0; i < static_cast<int>(graph.values.size()); ++i) stands_for.emplace_back(i);
  const auto now = [&](ValueId id) { return stands_for[static_cast<size_t>(id.value)]; };
  std::vector<Call> calls;
  for (Call call : graph.calls) {
    const EvaluationForm form = OperationNamed(call.operation).Evaluation(call.attributes);
    for (ValueId& id : call.inputs) id = now(id);
    if (form.identity) {
      stands_for[static_cast<size_t>(call.outputs[0].value)] = call.inputs[0];
      continue;
    }
    call.attributes = form.attributes;
    if (!form.operation.empty()) {
      call.operation = form.operation;
      call.outputs.resize(1);
    }
    calls.push_back(std::move(call));
  }
  for (const ValueId id : graph.outputs) outputs->push_back(now(id));
  return calls;
}

LayerLists EvaluationLists(const LayerGraph& graph) {
  LayerLists lists;
  lists.values = graph.values;
  lists.inputs = graph.inputs;
  lists.parameters = graph.parameters;
  lists.states = graph.states;
  lists.outputs = graph.outputs;
  lists.output_gradients.resize(graph.outputs.size());
  lists.input_gradients.resize(graph.inputs.size());
  lists.parameter_gradients.resize(graph.parameters.size());
  const std::vector<Call> calls = EvaluationCalls(graph, &lists.evaluation_outputs);
  ValueIdSet owned = ToSet(graph.parameters);
  owned.insert(graph.states.begin(), graph.states.end());
  const ValueIdSet inputs = ToSet(graph.inputs), outputs = ToSet(lists.evaluation_outputs);
  lists.evaluation = Liveness(owned, inputs, outputs).Of(calls);
  return lists;
}

}  // namespace stagecoach
