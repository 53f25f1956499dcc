// For tests: a case of an operation as a layer of one call.
#ifndef STAGECOACH_NETWORK_LISTS_CASE_TESTING_H_
#define STAGECOACH_NETWORK_LISTS_CASE_TESTING_H_

#include <vector>

#include "base/errors/check.h"
#include "network/lists/layer_graph.h"
#include "operations/case_testing.h"

namespace stagecoach {

// Operands that exist once are parameters or states; all others come in.
inline LayerGraph GraphOfCase(const OperationCase& of) {
  LayerWriter writer;
  std::vector<ValueId> inputs, outputs;
  for (const CaseOperand& operand : of.call.inputs) {
    if (operand.state) {
      inputs.push_back(writer.State(operand.type.shape));
    } else if (operand.type.leading == Leading::kOne) {
      inputs.push_back(writer.Parameter(operand.type.element, operand.type.shape));
    } else {
      inputs.push_back(writer.Input(operand.type));
    }
  }
  const std::vector<ValueId> made = writer.Emit(of.operation->name(), of.call.attributes, inputs);
  for (const int i : of.call.outputs) outputs.push_back(made[static_cast<size_t>(i)]);
  absl::StatusOr<LayerGraph> graph = writer.Finish(std::move(outputs));
  CHECK_OK(graph.status());
  return *std::move(graph);
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_CASE_TESTING_H_
