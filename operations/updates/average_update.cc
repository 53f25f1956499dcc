// average_update: average += learning_rate * (value - average).
// Inputs: value. Changes: average. Both are float32 and exist once, and no more is changed. So it
// is called for states of layers too.
#include "operations/catalogue.h"
#include "operations/type_check.h"
#include "operations/updates/update.h"

namespace stagecoach {
namespace {

class AverageUpdate final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "average_update"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"value"});
    if (status.ok()) status = CheckOperands(name(), adds, {"average"});
    if (!status.ok()) return status;
    const ValueType type = WeightType(Element::kFloat32, inputs[0].shape);
    status = CheckType("value", inputs[0], type);
    if (status.ok()) status = CheckType("average", adds[0], type);
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t) const override {
    return {.flops = 3 * types.inputs[0].shape.elements()};
  }
};

}  // namespace

OperationList AverageUpdateOperations() {
  static const AverageUpdate update;
  return {&update};
}

}  // namespace stagecoach
