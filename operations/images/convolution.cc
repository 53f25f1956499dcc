#include "operations/images/convolution.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

absl::Status CheckWeight(const ConvolutionSteps& steps, const ValueType& weight) {
  const bool four = weight.element == Element::kActivation && weight.leading == Leading::kOne &&
                    weight.shape.rank() == 4;
  if (four && weight.shape[0] % steps.groups == 0) return CheckExtents("weight", weight);
  return absl::InvalidArgumentError(
      absl::StrCat("weight is ", FormatType(weight),
                   "; must be [out, kernel height, kernel width, in / groups] with an out that ",
                   steps.groups, " groups divide"));
}

// Of x and a weight of that shape; `x` may be a made-up one that has the extents.
absl::StatusOr<ValueType> ConvolvedType(const ConvolutionSteps& steps, const ValueType& x,
                                        const Shape& weight) {
  const int64_t in = weight[3] * steps.groups;
  const ValueType expected = ActivationType({x.shape[0], x.shape[1], in});
  const absl::Status status = CheckType("x", x, expected);
  if (!status.ok()) return status;
  const Window window{{weight[1], weight[2]}, steps.stride, steps.padding, steps.dilation};
  const absl::StatusOr<Plane> places = PlacesOf(window, PlaneOf(x));
  if (!places.ok()) return places.status();
  return ActivationType({places->height, places->width, weight[0]});
}

int64_t ConvolutionFlops(const ValueType& y, const Shape& weight, int64_t samples) {
  return 2 * TypeElements(y, samples) * weight[1] * weight[2] * weight[3];
}

class Convolution final : public OperationOf<ConvolutionAttributes> {
 public:
  std::string_view name() const override { return "convolution"; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const ConvolutionAttributes& attributes, Shape image,
                         const Shape& weight) {
      CallCase made{.name = std::move(name),
                    .attributes = ToAttributes(attributes),
                    .inputs = {Samples(std::move(image)), Weights(weight)}};
      if (attributes.bias) made.inputs.push_back(Weights({weight[0]}));
      return made;
    };
    // More samples and places than a kernel takes at once, and no multiple of that.
    const auto many = [&](std::string name, const ConvolutionAttributes& attributes, Shape image,
                          const Shape& weight) {
      CallCase made = with(std::move(name), attributes, std::move(image), weight);
      made.samples = 11;
      return made;
    };
    return {
        with("pointwise", {}, {3, 5, 7}, {4, 1, 1, 7}),
        with("three_by_three", {.steps = {.padding = {1, 1}}, .bias = true}, {6, 5, 3},
             {5, 3, 3, 3}),
        with("stride", {.steps = {.stride = {2, 3}, .padding = {1, 0}}}, {7, 8, 3}, {4, 3, 2, 3}),
        with("pointwise_stride", {.steps = {.stride = {2, 2}}}, {8, 8, 3}, {16, 1, 1, 3}),
        many("pointwise_stride_wide", {.steps = {.stride = {2, 1}}}, {6, 6, 16}, {32, 1, 1, 16}),
        with("stride_beyond_the_window", {.steps = {.stride = {3, 3}}}, {8, 7, 4}, {16, 2, 2, 4}),
        many("whole_image", {.bias = true}, {7, 7, 8}, {16, 7, 7, 8}),
        with("padding_beyond_the_window", {.steps = {.padding = {3, 4}}}, {5, 5, 16},
             {16, 3, 3, 16}),
        with("dilation", {.steps = {.padding = {2, 1}, .dilation = {2, 1}}}, {6, 4, 2},
             {3, 3, 3, 2}),
        with("groups", {.steps = {.padding = {1, 1}, .groups = 3}, .bias = true}, {5, 4, 6},
             {9, 3, 3, 2}),
        with("depthwise", {.steps = {.stride = {2, 2}, .padding = {2, 2}, .groups = 5}}, {7, 6, 5},
             {5, 5, 5, 1}),
        with("one_by_seven", {.steps = {.padding = {0, 3}}}, {4, 9, 3}, {4, 1, 7, 3}),
        with("wide", {.steps = {.padding = {1, 1}}, .bias = true}, {9, 11, 17}, {33, 3, 3, 17}),
        many("many_places", {.steps = {.padding = {1, 1}}, .bias = true}, {19, 17, 3},
             {5, 3, 3, 3}),
        many("many_places_groups", {.steps = {.padding = {1, 1}, .groups = 3}, .bias = true},
             {19, 17, 6}, {9, 3, 3, 2}),
        many("many_places_depthwise", {.steps = {.padding = {1, 1}, .groups = 5}, .bias = true},
             {19, 17, 5}, {5, 3, 3, 1})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const ConvolutionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = attributes.bias ? CheckOperands(name(), inputs, {"x", "weight", "bias"})
                                          : CheckOperands(name(), inputs, {"x", "weight"});
    if (status.ok()) status = CheckImage("x", inputs[0]);
    if (status.ok()) status = CheckWeight(attributes.steps, inputs[1]);
    if (!status.ok()) return status;
    const absl::StatusOr<ValueType> y = ConvolvedType(attributes.steps, inputs[0], inputs[1].shape);
    if (!y.ok()) return y.status();
    if (attributes.bias) {
      status = CheckType("bias", inputs[2], WeightType(Element::kActivation, {y->shape.back()}));
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{*y};
  }
  Cost CostOfCall(const ConvolutionAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t products = ConvolutionFlops(types.outputs[0], types.inputs[1].shape, samples);
    return {products, products};
  }
  void WriteGradient(const ConvolutionAttributes& attributes,
                     GradientWriter& writer) const override {
    const ValueId dy = writer.OutputGradient(0);
    if (writer.Wants(0)) {
      const ConvolutionInputGradientAttributes input{attributes.steps,
                                                     PlaneOf(writer.input_type(0))};
      writer.Contribute(0, writer.Emit("convolution_input_gradient", ToAttributes(input),
                                       {dy, writer.input(1)})[0]);
    }
    if (writer.Wants(1) || (attributes.bias && writer.Wants(2))) {
      ConvolutionAttributes weights = attributes;
      weights.bias = attributes.bias && writer.Wants(2);
      writer.EmitAdding("convolution_weight_gradient", ToAttributes(weights), {dy, writer.input(0)},
                        weights.bias ? std::vector<int>{1, 2} : std::vector<int>{1});
    }
  }
};

// dx of dy, and y of x in a transposed convolution.
class IntoImage : public OperationOf<ConvolutionInputGradientAttributes> {
 private:
  virtual const char* operand() const = 0;

  absl::StatusOr<std::vector<ValueType>> TypesOf(
      const ConvolutionInputGradientAttributes& attributes, std::span<const ValueType> inputs,
      std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {operand(), "weight"});
    if (status.ok()) status = CheckImage(operand(), inputs[0]);
    if (status.ok()) status = CheckWeight(attributes.steps, inputs[1]);
    if (!status.ok()) return status;
    const Shape& weight = inputs[1].shape;
    const ValueType dx = ActivationType(
        {attributes.image.height, attributes.image.width, weight[3] * attributes.steps.groups});
    const absl::StatusOr<ValueType> y = ConvolvedType(attributes.steps, dx, weight);
    if (!y.ok()) return y.status();
    status = CheckType(operand(), inputs[0], *y);
    if (!status.ok()) return status;
    return std::vector<ValueType>{dx};
  }
  Cost CostOfCall(const ConvolutionInputGradientAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t products = ConvolutionFlops(types.inputs[0], types.inputs[1].shape, samples);
    return {products, products};
  }
};

class ConvolutionInputGradient final : public IntoImage {
 public:
  std::string_view name() const override { return "convolution_input_gradient"; }

 private:
  const char* operand() const override { return "dy"; }
};

class TransposedConvolution final : public IntoImage {
 public:
  std::string_view name() const override { return "transposed_convolution"; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const ConvolutionInputGradientAttributes& attributes,
                         Shape image, Shape weight, int64_t samples = 2) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples(std::move(image)), Weights(std::move(weight))},
                      .samples = samples};
    };
    return {
        with("doubling", {.steps = {.stride = {2, 2}}, .image = {6, 10}}, {3, 5, 7}, {7, 2, 2, 4}),
        with("overlapping", {.steps = {.stride = {2, 2}, .padding = {1, 1}}, .image = {7, 8}},
             {4, 4, 3}, {3, 3, 3, 5}),
        with("groups", {.steps = {.stride = {3, 2}, .groups = 2}, .image = {9, 4}}, {3, 2, 4},
             {4, 3, 2, 3}),
        with("many_places", {.steps = {.stride = {2, 2}}, .image = {38, 34}}, {19, 17, 6},
             {6, 2, 2, 3}, 11)};
  }

 private:
  const char* operand() const override { return "x"; }
  void WriteGradient(const ConvolutionInputGradientAttributes& attributes,
                     GradientWriter& writer) const override {
    const ConvolutionAttributes steps{.steps = attributes.steps};
    const ValueId dy = writer.OutputGradient(0);
    if (writer.Wants(0)) {
      writer.Contribute(0,
                        writer.Emit("convolution", ToAttributes(steps), {dy, writer.input(1)})[0]);
    }
    if (writer.Wants(1)) {
      writer.EmitAdding("convolution_weight_gradient", ToAttributes(steps), {writer.input(0), dy},
                        {1});
    }
  }
};

class ConvolutionWeightGradient final : public OperationOf<ConvolutionWeightGradientAttributes> {
 public:
  std::string_view name() const override { return "convolution_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(
      const ConvolutionWeightGradientAttributes& attributes, std::span<const ValueType> inputs,
      std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "x"});
    if (status.ok()) {
      status = attributes.bias ? CheckOperands(name(), adds, {"d_weight", "d_bias"})
                               : CheckOperands(name(), adds, {"d_weight"});
    }
    if (status.ok()) status = CheckImage("dy", inputs[0]);
    if (status.ok()) status = CheckImage("x", inputs[1]);
    if (!status.ok()) return status;
    ValueType weight = adds[0];
    weight.element = Element::kActivation;
    status = CheckWeight(attributes.steps, weight);
    if (!status.ok()) return status;
    status = CheckType("d_weight", adds[0], WeightType(Element::kFloat32, weight.shape));
    if (!status.ok()) return status;
    const absl::StatusOr<ValueType> y = ConvolvedType(attributes.steps, inputs[1], weight.shape);
    if (!y.ok()) return y.status();
    status = CheckType("dy", inputs[0], *y);
    if (status.ok() && attributes.bias) {
      status = CheckType("d_bias", adds[1], WeightType(Element::kFloat32, {y->shape.back()}));
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const ConvolutionWeightGradientAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t products = ConvolutionFlops(types.inputs[0], types.adds[0].shape, samples);
    return {products, products};
  }
};

}  // namespace

OperationList ConvolutionOperations() {
  static const Convolution convolution;
  static const ConvolutionInputGradient input;
  static const ConvolutionWeightGradient weight;
  static const TransposedConvolution transposed;
  return {&convolution, &input, &weight, &transposed};
}

}  // namespace stagecoach
