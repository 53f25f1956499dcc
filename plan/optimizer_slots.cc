#include "plan/optimizer_slots.h"

#include <variant>

#include "base/check.h"

namespace stagecoach {
namespace {

constexpr std::string_view kModelPrefix = "model/";
constexpr std::string_view kSlotPrefix = "opt/";

}  // namespace

std::vector<std::string> OptimizerSlots(const OptimizerSpec& optimizer) {
  struct Visitor {
    std::vector<std::string> operator()(const AdamWSpec&) const {
      return {kFirstMomentSlot, kSecondMomentSlot};
    }
    std::vector<std::string> operator()(const SgdSpec& sgd) const {
      if (sgd.momentum == 0) return {};
      return {kVelocitySlot};
    }
  };
  return std::visit(Visitor{}, optimizer);
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
