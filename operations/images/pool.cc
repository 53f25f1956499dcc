#include "operations/images/pool.h"

#include <string>
#include <utility>

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

absl::StatusOr<ValueType> PooledType(const PoolSteps& steps, const ValueType& image) {
  const Window window{steps.window, steps.stride, steps.padding, {1, 1}};
  const absl::StatusOr<Plane> places = PlacesOf(window, PlaneOf(image));
  if (!places.ok()) return places.status();
  return ActivationType({places->height, places->width, image.shape[2]});
}

ValueType ChoiceType(const ValueType& y) { return {Element::kIds, y.leading, y.shape}; }

ValueType ImageType(const Plane& image, const ValueType& y) {
  return ActivationType({image.height, image.width, y.shape.back()});
}

// What a gradient gives for this dy.
absl::StatusOr<ValueType> ImageOf(const PoolSteps& steps, const Plane& image, const ValueType& dy) {
  absl::Status status = CheckImage("dy", dy);
  if (!status.ok()) return status;
  const ValueType dx = ImageType(image, dy);
  const absl::StatusOr<ValueType> y = PooledType(steps, dx);
  if (!y.ok()) return y.status();
  status = CheckType("dy", dy, *y);
  if (!status.ok()) return status;
  return dx;
}

// Each place looks at its window.
Cost WindowCost(const PoolSteps& steps, const ValueType& places, int64_t samples) {
  return {.flops = kPoolFlops * steps.window.height * steps.window.width *
                   TypeElements(places, samples)};
}

class MaxPool final : public OperationOf<MaxPoolAttributes> {
 public:
  std::string_view name() const override { return "max_pool"; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const PoolSteps& steps, Shape image) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(MaxPoolAttributes{steps}),
                      .inputs = {Samples(std::move(image), Fill::kDistinct)},
                      .tolerance = 1e-6};
    };
    const PoolSteps overlapping{.window = {3, 3}, .stride = {1, 2}, .padding = {1, 1}};
    CallCase values = with("values", overlapping, {5, 6, 17});  // without the sums of its gradient
    values.differentiable = false;
    values.tolerance = values.bfloat16_tolerance = 0;
    return {
        values, with("apart", {}, {6, 5, 3}), with("overlapping", overlapping, {5, 6, 2}),
        with("wide_window", {.window = {2, 5}, .stride = {3, 1}, .padding = {1, 0}}, {4, 7, 17})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const MaxPoolAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckImage("x", inputs[0]);
    if (!status.ok()) return status;
    const absl::StatusOr<ValueType> y = PooledType(attributes.steps, inputs[0]);
    if (!y.ok()) return y.status();
    return std::vector<ValueType>{*y, ChoiceType(*y)};
  }
  Cost CostOfCall(const MaxPoolAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return WindowCost(attributes.steps, types.outputs[0], samples);
  }
  void WriteGradient(const MaxPoolAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const MaxPoolGradientAttributes gradient{attributes.steps, PlaneOf(writer.input_type(0))};
    writer.Contribute(0, writer.Emit("max_pool_gradient", ToAttributes(gradient),
                                     {writer.OutputGradient(0), writer.output(1)})[0]);
  }
};

class MaxPoolGradient final : public OperationOf<MaxPoolGradientAttributes> {
 public:
  std::string_view name() const override { return "max_pool_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const MaxPoolGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "choice"});
    if (!status.ok()) return status;
    const absl::StatusOr<ValueType> dx = ImageOf(attributes.steps, attributes.image, inputs[0]);
    if (!dx.ok()) return dx.status();
    status = CheckType("choice", inputs[1], ChoiceType(inputs[0]));
    if (!status.ok()) return status;
    return std::vector<ValueType>{*dx};
  }
  Cost CostOfCall(const MaxPoolGradientAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return WindowCost(attributes.steps, types.inputs[0], samples);
  }
};

class AveragePool final : public OperationOf<AveragePoolAttributes> {
 public:
  std::string_view name() const override { return "average_pool"; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const AveragePoolAttributes& attributes, Shape image) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples(std::move(image))},
                      .tolerance = 2e-6};
    };
    const PoolSteps overlapping{.window = {3, 3}, .stride = {1, 2}, .padding = {1, 1}};
    return {with("apart", {}, {6, 5, 3}), with("overlapping", {overlapping}, {5, 6, 2}),
            with("padding_counts", {.steps = overlapping, .count_padding = true}, {5, 6, 17})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AveragePoolAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckImage("x", inputs[0]);
    if (!status.ok()) return status;
    const absl::StatusOr<ValueType> y = PooledType(attributes.steps, inputs[0]);
    if (!y.ok()) return y.status();
    return std::vector<ValueType>{*y};
  }
  Cost CostOfCall(const AveragePoolAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return WindowCost(attributes.steps, types.outputs[0], samples);
  }
  void WriteGradient(const AveragePoolAttributes& attributes,
                     GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const AveragePoolGradientAttributes gradient{attributes.steps, attributes.count_padding,
                                                 PlaneOf(writer.input_type(0))};
    writer.Contribute(0, writer.Emit("average_pool_gradient", ToAttributes(gradient),
                                     {writer.OutputGradient(0)})[0]);
  }
};

class AveragePoolGradient final : public OperationOf<AveragePoolGradientAttributes> {
 public:
  std::string_view name() const override { return "average_pool_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AveragePoolGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    const absl::Status status = CheckOperands(name(), inputs, {"dy"});
    if (!status.ok()) return status;
    const absl::StatusOr<ValueType> dx = ImageOf(attributes.steps, attributes.image, inputs[0]);
    if (!dx.ok()) return dx.status();
    return std::vector<ValueType>{*dx};
  }
  Cost CostOfCall(const AveragePoolGradientAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return WindowCost(attributes.steps, types.inputs[0], samples);
  }
};

class GlobalAveragePool final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "global_average_pool"; }
  std::vector<CallCase> Cases() const override {
    return {{.name = "one_channel", .inputs = {Samples({3, 4, 1})}, .tolerance = 2e-6},
            {.name = "odd", .inputs = {Samples({5, 7, 19})}, .samples = 3, .tolerance = 2e-6}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckImage("x", inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{ActivationType({inputs[0].shape[2]})};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kPoolFlops * TypeElements(types.inputs[0], samples)};
  }
  void WriteGradient(const NoAttributes&, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const GlobalAveragePoolGradientAttributes gradient{PlaneOf(writer.input_type(0))};
    writer.Contribute(0, writer.Emit("global_average_pool_gradient", ToAttributes(gradient),
                                     {writer.OutputGradient(0)})[0]);
  }
};

class GlobalAveragePoolGradient final : public OperationOf<GlobalAveragePoolGradientAttributes> {
 public:
  std::string_view name() const override { return "global_average_pool_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(
      const GlobalAveragePoolGradientAttributes& attributes, std::span<const ValueType> inputs,
      std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 1);
    if (!status.ok()) return status;
    status = CheckType("dy", inputs[0], ActivationType({inputs[0].shape.back()}));
    if (!status.ok()) return status;
    return std::vector<ValueType>{ImageType(attributes.image, inputs[0])};
  }
  Cost CostOfCall(const GlobalAveragePoolGradientAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kPoolFlops * TypeElements(types.outputs[0], samples)};
  }
};

}  // namespace

OperationList PoolOperations() {
  static const MaxPool max;
  static const MaxPoolGradient max_gradient;
  static const AveragePool average;
  static const AveragePoolGradient average_gradient;
  static const GlobalAveragePool global;
  static const GlobalAveragePoolGradient global_gradient;
  return {&max, &max_gradient, &average, &average_gradient, &global, &global_gradient};
}

}  // namespace stagecoach
