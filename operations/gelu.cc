// gelu: y = x * Phi(x), in its tanh form. gelu_gradient: dx = dy * gelu'(x).
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Gelu final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "gelu"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("gelu", inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 0);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kGeluFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const NoAttributes&, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    writer.Contribute(
        0, writer.Emit("gelu_gradient", {}, {writer.OutputGradient(0), writer.input(0)})[0]);
  }
};

class GeluGradient final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "gelu_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("gelu_gradient", inputs, {"dy", "x"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 0);
    if (status.ok()) status = CheckType("x", inputs[1], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kGeluFlops.backward * TypeElements(types.outputs[0], samples)};
  }
};

}  // namespace

OperationList GeluOperations() {
  static const Gelu gelu;
  static const GeluGradient gradient;
  return {&gelu, &gradient};
}

}  // namespace stagecoach
