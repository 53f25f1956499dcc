#include "network/loss_call.h"

#include <utility>

#include "base/errors/check.h"
#include "operations/catalogue.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {

LossCall LossCallOf(const Network& network, bool gradient) {
  const Objective& objective = network.objective;
  LossCall loss{.call = {.operation = objective.operation, .attributes = objective.attributes}};
  Call& call = loss.call;
  CallTypes& types = loss.types;
  call.attributes.Set("gradient", gradient);
  types.inputs.push_back(network.wire(objective.output).type);
  for (const ValueType& type : objective.loaded()) types.inputs.push_back(type);
  if (gradient) types.inputs.push_back(ScaleType());
  absl::StatusOr<std::vector<ValueType>> outputs =
      OperationNamed(call.operation).Types(call.attributes, types.inputs, {});
  CHECK_OK(outputs.status());
  types.outputs = *std::move(outputs);
  int values = 0;
  for (size_t i = 0; i < types.inputs.size(); ++i) call.inputs.emplace_back(values++);
  for (size_t i = 0; i < types.outputs.size(); ++i) call.outputs.emplace_back(values++);
  return loss;
}

}  // namespace stagecoach
