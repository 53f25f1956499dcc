#include "operations/pointwise/scale.h"

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Scale final : public OperationOf<ScaleAttributes> {
 public:
  std::string_view name() const override { return "scale"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, double factor, Shape shape) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(ScaleAttributes{factor}),
                      .inputs = {Samples(std::move(shape))},
                      .samples = 3,
                      .tolerance = 0};
    };
    return {with("odd", 4.69, {7, 5}), with("long", 0.3, {101, 37}), with("vector", 32, {9})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const ScaleAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 0);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const ScaleAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const ScaleAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    writer.Contribute(
        0, writer.Emit("scale", ToAttributes(attributes), {writer.OutputGradient(0)})[0]);
  }
};

}  // namespace

OperationList ScaleOperations() {
  static const Scale scale;
  return {&scale};
}

}  // namespace stagecoach
