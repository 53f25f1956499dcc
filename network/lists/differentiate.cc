#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "network/lists/evaluation_calls.h"
#include "network/lists/gradient_calls.h"
#include "network/lists/lists.h"
#include "network/lists/liveness.h"
#include "network/lists/update_calls.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

using Ids = ValueIdSet;

// The input part: what the input gradients depend on. The weight part is the rest.
void Split(const GradientCalls& backward, std::vector<Call>* input_part,
           std::vector<Call>* weight_part) {
  Ids wanted = ToSet(backward.input_gradients);
  std::vector<bool> needed(backward.calls.size(), false);
  for (size_t i = backward.calls.size(); i-- > 0;) {
    const Call& call = backward.calls[i];
    needed[i] = std::any_of(call.outputs.begin(), call.outputs.end(),
                            [&](ValueId id) { return wanted.contains(id); });
    if (needed[i]) wanted.insert(call.inputs.begin(), call.inputs.end());
  }
  for (size_t i = 0; i < backward.calls.size(); ++i) {
    (needed[i] ? input_part : weight_part)->push_back(backward.calls[i]);
  }
}

// What the calls read that they do not make themselves, without what is owned; ascending.
std::vector<ValueId> ReadFromOutside(const std::vector<Call>& calls, const Ids& owned,
                                     const Ids& made_before) {
  Ids read, made;
  for (const Call& call : calls) {
    for (const ValueId id : call.inputs) {
      if (!owned.contains(id) && !made.contains(id) && !made_before.contains(id)) {
        read.insert(id);
      }
    }
    made.insert(call.outputs.begin(), call.outputs.end());
  }
  return {read.begin(), read.end()};
}

Ids Union(const Ids& a, const Ids& b) {
  Ids all = a;
  all.insert(b.begin(), b.end());
  return all;
}

Ids Owned(const LayerLists& lists) {
  Ids owned = ToSet(lists.parameters);
  owned.insert(lists.states.begin(), lists.states.end());
  owned.insert(lists.accumulators.begin(), lists.accumulators.end());
  return owned;
}

void AddForwardLists(const LayerGraph& graph, const Ids& owned, LayerLists* lists) {
  const Ids inputs = ToSet(graph.inputs), outputs = ToSet(graph.outputs);
  const Ids with_stash = Union(outputs, ToSet(lists->stash));
  lists->forward = Liveness(owned, inputs, with_stash).Of(graph.calls);
  lists->forward_alone = Liveness(owned, inputs, outputs).Of(graph.calls);
  const std::vector<Call> calls = EvaluationCalls(graph, &lists->evaluation_outputs);
  const Ids evaluated = ToSet(lists->evaluation_outputs);
  lists->evaluation = Liveness(owned, inputs, evaluated).Of(calls);
}

// An operation may give less in an evaluation than in training.
absl::Status CheckEvaluation(const LayerLists& lists, Ids there) {
  for (const ListedCall& listed : lists.evaluation.calls) {
    for (const ValueId id : listed.call.inputs) {
      if (there.contains(id)) continue;
      return absl::InvalidArgumentError(absl::StrCat(listed.call.operation, ": reads value ",
                                                     id.value,
                                                     ", which is not there in an evaluation"));
    }
    there.insert(listed.call.outputs.begin(), listed.call.outputs.end());
  }
  for (const ValueId id : lists.evaluation_outputs) {
    if (there.contains(id)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gives value ", id.value, ", which is not there in an evaluation"));
  }
  return absl::OkStatus();
}

}  // namespace

CallTypes LayerLists::TypesOf(const Call& call) const {
  CallTypes types;
  for (const ValueId id : call.inputs) types.inputs.push_back(value(id).type);
  for (const ValueId id : call.outputs) types.outputs.push_back(value(id).type);
  for (const ValueId id : call.adds) types.adds.push_back(value(id).type);
  return types;
}

int64_t LeastSamples(const LayerLists& lists) {
  int64_t least = 1;
  for (const ListedCall& listed : lists.forward.calls) {
    const Call& call = listed.call;
    least = std::max(
        least, OperationNamed(call.operation).LeastSamples(call.attributes, lists.TypesOf(call)));
  }
  return least;
}

absl::StatusOr<LayerLists> TryDifferentiate(const LayerGraph& graph) {
  ASSIGN_OR_RETURN(GradientCalls backward, WriteGradientCalls(graph));
  FuseGradientCalls(graph, &backward);
  ASSIGN_OR_RETURN(const UpdateCalls updates, WriteUpdateCalls(graph, &backward.values));
  std::vector<Call> input_part, weight_part;
  Split(backward, &input_part, &weight_part);
  weight_part.insert(weight_part.end(), updates.folds.begin(), updates.folds.end());

  LayerLists lists;
  lists.values = backward.values;
  lists.inputs = graph.inputs;
  lists.parameters = graph.parameters;
  lists.states = graph.states;
  lists.accumulators = updates.accumulators;
  lists.outputs = graph.outputs;
  lists.output_gradients = backward.output_gradients;
  lists.input_gradients = backward.input_gradients;
  lists.parameter_gradients = backward.parameter_gradients;
  const Ids owned = Owned(lists), gradients = ToSet(lists.output_gradients),
            kept = ToSet(lists.input_gradients);
  const std::vector<Call> joint =
      JoinCalls(JointOrder(input_part, weight_part, lists.input_gradients));
  lists.stash = ReadFromOutside(joint, owned, gradients);
  lists.weight_stash = ReadFromOutside(weight_part, owned, {});
  AddForwardLists(graph, owned, &lists);

  const Ids handed_in = Union(ToSet(lists.stash), gradients);
  lists.backward = Liveness(owned, handed_in, kept).Of(joint);
  const Ids to_weights = ToSet(lists.weight_stash);
  const Ids after_input = Union(kept, to_weights);
  lists.input_gradient = Liveness(owned, handed_in, after_input).Of(input_part);
  lists.weight_gradient = Liveness(owned, to_weights, {}).Of(weight_part);
  lists.commit = Liveness(owned, {}, {}).Of(updates.commits);
  RETURN_IF_ERROR(CheckEvaluation(lists, Union(owned, ToSet(lists.inputs))));
  return lists;
}

LayerLists Differentiate(const LayerGraph& graph) {
  absl::StatusOr<LayerLists> lists = TryDifferentiate(graph);
  CHECK_OK(lists.status());
  return *std::move(lists);
}

}  // namespace stagecoach
