#include "operations/linear.h"

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/row_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

// A back end may round a product before it is an operand of gelu or of its derivative.
constexpr double kGeluBfloat16Tolerance = 1e-2;

absl::Status CheckLinearWeight(const ValueType& weight) {
  if (weight.element == Element::kActivation && weight.leading == Leading::kOne &&
      weight.shape.rank() == 2) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("weight is ", FormatType(weight), "; must be [out, in]"));
}

// Of one product of this many rows: rows * in * out multiply-adds.
int64_t LinearFlops(const ValueType& x, int64_t out, int64_t samples) {
  return 2 * TypeElements(x, samples) * out;
}

class Linear final : public OperationOf<LinearAttributes> {
 public:
  std::string_view name() const override { return "linear"; }
  std::optional<Attributes> WithSum(const Attributes& attributes) const override {
    LinearAttributes sum = Get(attributes);
    if (sum.gelu || sum.residual) return std::nullopt;
    sum.residual = true;
    return ToAttributes(sum);
  }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const LinearAttributes& attributes, Shape shape,
                         int64_t out) {
      const int64_t in = shape.back();
      CallCase made{.name = std::move(name),
                    .attributes = ToAttributes(attributes),
                    .inputs = {Samples(shape), Weights({out, in})}};
      if (attributes.bias) made.inputs.push_back(Weights({out}));
      if (attributes.residual) {
        made.inputs.push_back({WithLastExtent(ActivationType(shape), out), Fill::kNormal, 0});
      }
      if (attributes.gelu) {
        made.outputs = {1};
        made.bfloat16_tolerance = kGeluBfloat16Tolerance;
      }
      return made;
    };
    return {with("plain", {}, {5, 3}, 7),
            with("bias", {.bias = true}, {17, 33}, 5),
            with("bias_gelu", {.bias = true, .gelu = true}, {7, 9}, 21),
            with("gelu", {.gelu = true}, {3, 4}, 5),
            with("bias_residual", {.bias = true, .residual = true}, {7, 40}, 11),
            with("residual", {.residual = true}, {6, 5}, 4),
            with("image", {.bias = true}, {3, 5, 6}, 10),
            with("wide", {.bias = true}, {67, 130}, 70)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const LinearAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    const size_t expected = 2u + (attributes.bias ? 1 : 0) + (attributes.residual ? 1 : 0);
    if (inputs.size() != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          "linear has ", inputs.size(), " operands; with these attributes it takes ", expected));
    }
    if (attributes.gelu && attributes.residual) {
      return absl::InvalidArgumentError("linear has gelu and residual; one of them at most");
    }
    absl::Status status = CheckActivation("x", inputs[0], 1);
    if (status.ok()) status = CheckLinearWeight(inputs[1]);
    if (!status.ok()) return status;
    const int64_t out = inputs[1].shape[0], in = inputs[1].shape[1];
    status = CheckType("x", inputs[0], WithLastExtent(inputs[0], in));
    const ValueType y = WithLastExtent(inputs[0], out);
    size_t next = 2;
    if (status.ok() && attributes.bias) {
      status = CheckType("bias", inputs[next++], WeightType(Element::kActivation, {out}));
    }
    if (status.ok() && attributes.residual) status = CheckType("residual", inputs[next], y);
    if (!status.ok()) return status;
    return attributes.gelu ? std::vector<ValueType>{y, y} : std::vector<ValueType>{y};
  }
  Cost CostOfCall(const LinearAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t products = LinearFlops(types.inputs[0], types.inputs[1].shape[0], samples);
    const int64_t each =
        (attributes.gelu ? kGeluFlops.forward : 0) + (attributes.residual ? kAddFlops.forward : 0);
    return {products, products + each * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const LinearAttributes& attributes, GradientWriter& writer) const override {
    ValueId dy = writer.OutputGradient(0);
    if (attributes.gelu) {
      if (dy.valid()) return writer.Refuse("with gelu gives y for its own gradient only");
      dy = writer.Emit("gelu_gradient", {}, {writer.OutputGradient(1), writer.output(0)})[0];
    }
    if (writer.Wants(0)) {
      writer.Contribute(
          0, writer.Emit("linear_input_gradient", ToAttributes(LinearInputGradientAttributes{}),
                         {dy, writer.input(1)})[0]);
    }
    if (writer.Wants(1) || (attributes.bias && writer.Wants(2))) {
      const bool bias = attributes.bias && writer.Wants(2);
      writer.EmitAdding("linear_weight_gradient",
                        ToAttributes(LinearWeightGradientAttributes{bias}), {dy, writer.input(0)},
                        bias ? std::vector<int>{1, 2} : std::vector<int>{1});
    }
    const int residual = attributes.bias ? 3 : 2;
    if (attributes.residual && writer.Wants(residual)) writer.Contribute(residual, dy);
  }
};

class LinearInputGradient final : public OperationOf<LinearInputGradientAttributes> {
 public:
  std::string_view name() const override { return "linear_input_gradient"; }
  std::vector<CallCase> Cases() const override {
    return {{.name = "gelu",
             .attributes = ToAttributes(LinearInputGradientAttributes{.gelu = true}),
             .inputs = {Samples({13, 7}), Weights({7, 33}), Samples({13, 33})},
             .differentiable = false,
             .bfloat16_tolerance = kGeluBfloat16Tolerance}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const LinearInputGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = attributes.gelu
                              ? CheckOperands(name(), inputs, {"dy", "weight", "gelu_input"})
                              : CheckOperands(name(), inputs, {"dy", "weight"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 1);
    if (status.ok()) status = CheckLinearWeight(inputs[1]);
    if (!status.ok()) return status;
    status = CheckType("dy", inputs[0], WithLastExtent(inputs[0], inputs[1].shape[0]));
    const ValueType dx = WithLastExtent(inputs[0], inputs[1].shape[1]);
    if (status.ok() && attributes.gelu) status = CheckType("gelu_input", inputs[2], dx);
    if (!status.ok()) return status;
    return std::vector<ValueType>{dx};
  }
  Cost CostOfCall(const LinearInputGradientAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t products = LinearFlops(types.inputs[0], types.inputs[1].shape[1], samples);
    const int64_t each = attributes.gelu ? kGeluFlops.backward : 0;
    return {products, products + each * TypeElements(types.outputs[0], samples)};
  }
};

class LinearWeightGradient final : public OperationOf<LinearWeightGradientAttributes> {
 public:
  std::string_view name() const override { return "linear_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const LinearWeightGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "x"});
    if (status.ok()) {
      status = attributes.bias ? CheckOperands(name(), adds, {"d_weight", "d_bias"})
                               : CheckOperands(name(), adds, {"d_weight"});
    }
    if (status.ok()) status = CheckActivation("dy", inputs[0], 1);
    if (status.ok()) status = CheckActivation("x", inputs[1], 1);
    if (!status.ok()) return status;
    const int64_t out = inputs[0].shape.back(), in = inputs[1].shape.back();
    status = CheckType("x", inputs[1], WithLastExtent(inputs[0], in));
    if (status.ok()) {
      status = CheckType("d_weight", adds[0], WeightType(Element::kFloat32, {out, in}));
    }
    if (status.ok() && attributes.bias) {
      status = CheckType("d_bias", adds[1], WeightType(Element::kFloat32, {out}));
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const LinearWeightGradientAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t products = LinearFlops(types.inputs[0], types.inputs[1].shape.back(), samples);
    return {products, products};
  }
};

}  // namespace

OperationList LinearOperations() {
  static const Linear linear;
  static const LinearInputGradient input;
  static const LinearWeightGradient weight;
  return {&linear, &input, &weight};
}

}  // namespace stagecoach
