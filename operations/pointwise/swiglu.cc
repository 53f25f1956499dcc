// swiglu: y = silu(gate) * up, silu(a) = a / (1 + exp(-a)) (Shazeer 2020, "GLU Variants Improve
// Transformer"). Inputs: gate, up.
// swiglu_gradient: dy, gate, up -> d_gate = dy * up * silu'(gate), d_up = dy * silu(gate), in one
// pass.
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Swiglu final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "swiglu"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0, 1}; }
  std::vector<CallCase> Cases() const override {
    return {{.name = "odd", .inputs = {Samples({7, 5}), Samples({7, 5})}},
            {.name = "long", .inputs = {Samples({101, 137}), Samples({101, 137})}, .samples = 3}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("swiglu", inputs, {"gate", "up"});
    if (status.ok()) status = CheckActivation("gate", inputs[0], 0);
    if (status.ok()) status = CheckType("up", inputs[1], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kSwigluFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const NoAttributes&, GradientWriter& writer) const override {
    if (!writer.Wants(0) && !writer.Wants(1)) return;
    const std::vector<ValueId> gradients = writer.Emit(
        "swiglu_gradient", {}, {writer.OutputGradient(0), writer.input(0), writer.input(1)});
    for (const int i : {0, 1}) {
      if (writer.Wants(i)) writer.Contribute(i, gradients[static_cast<size_t>(i)]);
    }
  }
};

class SwigluGradient final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "swiglu_gradient"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "gate", "up"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 0);
    if (status.ok()) status = CheckType("gate", inputs[1], inputs[0]);
    if (status.ok()) status = CheckType("up", inputs[2], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0], inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kSwigluFlops.backward * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList SwigluOperations() {
  static const Swiglu swiglu;
  static const SwigluGradient gradient;
  return {&swiglu, &gradient};
}

}  // namespace stagecoach
