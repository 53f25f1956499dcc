#include "operations/norms/layer_norm.h"

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/joint.h"
#include "operations/row_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

// The first inputs of both gradients: dy, x, [weight,] mean, rstd.
absl::Status CheckNormalizedRows(const ValueType& dy, const ValueType& x, const ValueType& mean,
                                 const ValueType& rstd) {
  absl::Status status = CheckActivation("dy", dy, 2);
  if (status.ok()) status = CheckType("x", x, dy);
  if (status.ok()) status = CheckType("mean", mean, StatisticsType(dy));
  if (status.ok()) status = CheckType("rstd", rstd, StatisticsType(dy));
  return status;
}

class LayerNorm final : public OperationOf<LayerNormAttributes> {
 public:
  std::string_view name() const override { return "layer_norm"; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, int64_t samples, Shape shape) {
      const int64_t width = shape.back();
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(LayerNormAttributes{}),
                      .inputs = {Samples(std::move(shape), Fill::kShifted), Float32Weights({width}),
                                 Float32Weights({width})},
                      .samples = samples};
    };
    return {of("one_row", 1, {1, 5}),  of("odd", 1, {7, 17}),
            of("square", 1, {33, 33}), of("many_rows", 2, {500, 5}),
            of("wide", 2, {65, 384}),  of("blocks_and_a_rest", 1, {1025, 64}),
            of("image", 2, {3, 5, 9})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const LayerNormAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("layer_norm", inputs, {"x", "weight", "bias"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 2);
    if (!status.ok()) return status;
    const ValueType weight = RowWeightType(inputs[0]);
    status = CheckType("weight", inputs[1], weight);
    if (status.ok()) status = CheckType("bias", inputs[2], weight);
    if (!status.ok()) return status;
    const ValueType statistics = StatisticsType(inputs[0]);
    return std::vector<ValueType>{inputs[0], statistics, statistics};
  }
  Cost CostOfCall(const LayerNormAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kLayerNormFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const LayerNormAttributes&, GradientWriter& writer) const override {
    const ValueId dy = writer.OutputGradient(0), x = writer.input(0), mean = writer.output(1),
                  rstd = writer.output(2);
    if (writer.Wants(0)) {
      writer.Contribute(
          0, writer.Emit("layer_norm_input_gradient", ToAttributes(LayerNormGradientAttributes{}),
                         {dy, x, writer.input(1), mean, rstd})[0]);
    }
    if (writer.Wants(1) || writer.Wants(2)) {
      writer.EmitAdding("layer_norm_weight_gradient", {}, {dy, x, mean, rstd}, {1, 2});
    }
  }
};

class LayerNormInputGradient final : public OperationOf<LayerNormGradientAttributes> {
 public:
  std::string_view name() const override { return "layer_norm_input_gradient"; }
  std::optional<Attributes> WithSum(const Attributes& attributes) const override {
    if (Get(attributes).residual) return std::nullopt;
    return ToAttributes(LayerNormGradientAttributes{.residual = true});
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const LayerNormGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status =
        attributes.residual
            ? CheckOperands(name(), inputs, {"dy", "x", "weight", "mean", "rstd", "residual"})
            : CheckOperands(name(), inputs, {"dy", "x", "weight", "mean", "rstd"});
    if (status.ok()) status = CheckNormalizedRows(inputs[0], inputs[1], inputs[3], inputs[4]);
    if (status.ok()) status = CheckType("weight", inputs[2], RowWeightType(inputs[0]));
    if (status.ok() && attributes.residual) status = CheckType("residual", inputs[5], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const LayerNormGradientAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t each =
        kLayerNormFlops.backward / 2 + (attributes.residual ? kAddFlops.backward : 0);
    return {.flops = each * TypeElements(types.outputs[0], samples)};
  }
};

class LayerNormWeightGradient final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "layer_norm_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "x", "mean", "rstd"});
    if (status.ok()) status = CheckOperands(name(), adds, {"d_weight", "d_bias"});
    if (status.ok()) status = CheckNormalizedRows(inputs[0], inputs[1], inputs[2], inputs[3]);
    if (status.ok()) status = CheckType("d_weight", adds[0], RowWeightType(inputs[0]));
    if (status.ok()) status = CheckType("d_bias", adds[1], RowWeightType(inputs[0]));
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kLayerNormFlops.backward / 2 * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList LayerNormOperations() {
  static const LayerNorm norm;
  static const LayerNormInputGradient input;
  static const LayerNormWeightGradient weight;
  static const JointOperation joint(
      "layer_norm_gradient",
      {"layer_norm_input_gradient", "layer_norm_weight_gradient", {0, 1, 3, 4}});
  return {&norm, &input, &weight, &joint};
}

}  // namespace stagecoach
