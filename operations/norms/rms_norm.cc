#include "operations/norms/rms_norm.h"

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/joint.h"
#include "operations/row_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

// What both gradients read: dy, x, [weight,] rstd.
absl::Status CheckRows(const ValueType& dy, const ValueType& x, const ValueType& rstd) {
  absl::Status status = CheckActivation("dy", dy, 2);
  if (status.ok()) status = CheckType("x", x, dy);
  if (status.ok()) status = CheckType("rstd", rstd, StatisticsType(dy));
  return status;
}

class RmsNorm final : public OperationOf<RmsNormAttributes> {
 public:
  std::string_view name() const override { return "rms_norm"; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, double epsilon, Shape shape) {
      const int64_t width = shape.back();
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(RmsNormAttributes{epsilon}),
                      .inputs = {Samples(std::move(shape)), Float32Weights({width})}};
    };
    return {of("narrow", 1e-5, {5, 3}), of("large_epsilon", 0.5, {7, 17}),
            of("wide", 1e-6, {65, 130}), of("image", 1e-5, {3, 5, 9})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const RmsNormAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("rms_norm", inputs, {"x", "weight"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 2);
    if (!status.ok()) return status;
    status = CheckType("weight", inputs[1], RowWeightType(inputs[0]));
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0], StatisticsType(inputs[0])};
  }
  Cost CostOfCall(const RmsNormAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kRmsNormFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const RmsNormAttributes&, GradientWriter& writer) const override {
    const ValueId dy = writer.OutputGradient(0), x = writer.input(0), rstd = writer.output(1);
    if (writer.Wants(0)) {
      writer.Contribute(
          0, writer.Emit("rms_norm_input_gradient", ToAttributes(RmsNormGradientAttributes{}),
                         {dy, x, writer.input(1), rstd})[0]);
    }
    if (writer.Wants(1)) writer.EmitAdding("rms_norm_weight_gradient", {}, {dy, x, rstd}, {1});
  }
};

class RmsNormInputGradient final : public OperationOf<RmsNormGradientAttributes> {
 public:
  std::string_view name() const override { return "rms_norm_input_gradient"; }
  std::optional<Attributes> WithSum(const Attributes& attributes) const override {
    if (Get(attributes).residual) return std::nullopt;
    return ToAttributes(RmsNormGradientAttributes{.residual = true});
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const RmsNormGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status =
        attributes.residual
            ? CheckOperands(name(), inputs, {"dy", "x", "weight", "rstd", "residual"})
            : CheckOperands(name(), inputs, {"dy", "x", "weight", "rstd"});
    if (status.ok()) status = CheckRows(inputs[0], inputs[1], inputs[3]);
    if (status.ok()) status = CheckType("weight", inputs[2], RowWeightType(inputs[0]));
    if (status.ok() && attributes.residual) status = CheckType("residual", inputs[4], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const RmsNormGradientAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t each =
        kRmsNormFlops.backward / 2 + (attributes.residual ? kAddFlops.backward : 0);
    return {.flops = each * TypeElements(types.outputs[0], samples)};
  }
};

class RmsNormWeightGradient final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "rms_norm_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "x", "rstd"});
    if (status.ok()) status = CheckOperands(name(), adds, {"d_weight"});
    if (status.ok()) status = CheckRows(inputs[0], inputs[1], inputs[2]);
    if (status.ok()) status = CheckType("d_weight", adds[0], RowWeightType(inputs[0]));
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kRmsNormFlops.backward / 2 * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList RmsNormOperations() {
  static const RmsNorm norm;
  static const RmsNormInputGradient input;
  static const RmsNormWeightGradient weight;
  static const JointOperation joint(
      "rms_norm_gradient", {"rms_norm_input_gradient", "rms_norm_weight_gradient", {0, 1, 3}});
  return {&norm, &input, &weight, &joint};
}

}  // namespace stagecoach
