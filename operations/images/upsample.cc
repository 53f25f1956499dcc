#include "operations/images/upsample.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Upsample final : public OperationOf<UpsampleAttributes> {
 public:
  std::string_view name() const override { return "upsample"; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, Plane times, Shape image) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(UpsampleAttributes{times}),
                      .inputs = {Samples(std::move(image))},
                      .samples = 3};
    };
    return {of("doubling", {2, 2}, {3, 5, 7}), of("rows", {3, 1}, {2, 4, 5}),
            of("columns", {1, 4}, {5, 2, 1}), of("as_it_is", {1, 1}, {2, 2, 3}),
            of("wide", {2, 2}, {9, 11, 33})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const UpsampleAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckImage("x", inputs[0]);
    if (!status.ok()) return status;
    const Shape& x = inputs[0].shape;
    const Plane& times = attributes.times;
    const ValueType y = ActivationType({x[0] * times.height, x[1] * times.width, x[2]});
    status = CheckExtents("y", y);
    if (!status.ok()) return status;
    return std::vector<ValueType>{y};
  }
  Cost CostOfCall(const UpsampleAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const UpsampleAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    writer.Contribute(0, writer.Emit("upsample_gradient", ToAttributes(attributes),
                                     {writer.OutputGradient(0)})[0]);
  }
};

class UpsampleGradient final : public OperationOf<UpsampleAttributes> {
 public:
  std::string_view name() const override { return "upsample_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const UpsampleAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy"});
    if (status.ok()) status = CheckImage("dy", inputs[0]);
    if (!status.ok()) return status;
    const Shape& dy = inputs[0].shape;
    const Plane& times = attributes.times;
    if (dy[0] % times.height != 0 || dy[1] % times.width != 0) {
      return absl::InvalidArgumentError(absl::StrCat("dy is ", FormatType(inputs[0]),
                                                     "; must have extents that ", times.height, "x",
                                                     times.width, " divides"));
    }
    return std::vector<ValueType>{
        ActivationType({dy[0] / times.height, dy[1] / times.width, dy[2]})};
  }
  Cost CostOfCall(const UpsampleAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kAddFlops.forward * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList UpsampleOperations() {
  static const Upsample upsample;
  static const UpsampleGradient gradient;
  return {&upsample, &gradient};
}

}  // namespace stagecoach
