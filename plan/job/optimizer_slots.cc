#include "plan/job/optimizer_slots.h"

#include <algorithm>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

constexpr std::string_view kModelPrefix = "model/";
constexpr std::string_view kSlotPrefix = "opt/";

}  // namespace

std::vector<OptimizerState> OptimizerStates(const OptimizerSpec& optimizer,
                                            const Shape& parameter) {
  return OptimizerKinds().Named(optimizer.kind).States(optimizer, parameter);
}

int64_t OptimizerElements(const OptimizerSpec& optimizer, const Shape& parameter) {
  int64_t elements = 0;
  for (const OptimizerState& state : OptimizerStates(optimizer, parameter)) {
    elements += state.shape.elements();
  }
  return elements;
}

std::vector<OptimizerState> TrainingStates(const TrainingSpec& training, const Shape& parameter) {
  std::vector<OptimizerState> states = OptimizerStates(training.optimizer, parameter);
  if (training.average.decay > 0) states.push_back({kAverageSlot, parameter});
  std::sort(states.begin(), states.end(),
            [](const OptimizerState& a, const OptimizerState& b) { return a.slot < b.slot; });
  return states;
}

std::string SlotTensorName(std::string_view slot, std::string_view parameter) {
  CHECK(parameter.starts_with(kModelPrefix)) << parameter;
  std::string name(kSlotPrefix);
  name.append(slot).append("/").append(parameter.substr(kModelPrefix.size()));
  return name;
}

std::string SlotOfTensor(std::string_view name) {
  if (!name.starts_with(kSlotPrefix)) return "";
  name.remove_prefix(kSlotPrefix.size());
  return std::string(name.substr(0, name.find('/')));
}

}  // namespace stagecoach
