#include "plan/job/optimizer_slots.h"

#include <algorithm>

#include "base/errors/check.h"
#include "plan/job/optimizer_kinds.h"

namespace stagecoach {
namespace {

constexpr std::string_view kModelPrefix = "model/";
constexpr std::string_view kSlotPrefix = "opt/";

}  // namespace

std::vector<std::string> OptimizerSlots(const OptimizerSpec& optimizer) {
  return OptimizerKinds().Named(optimizer.kind).Slots(optimizer);
}

std::vector<std::string> TrainingSlots(const TrainingSpec& training) {
  std::vector<std::string> slots = OptimizerSlots(training.optimizer);
  if (training.average.decay > 0) slots.emplace_back(kAverageSlot);
  std::sort(slots.begin(), slots.end());
  return slots;
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
