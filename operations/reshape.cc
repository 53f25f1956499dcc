#include "operations/reshape.h"

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Reshape final : public OperationOf<ReshapeAttributes> {
 public:
  std::string_view name() const override { return "reshape"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](const char* name, std::vector<int64_t> shape, Shape from) {
      return CallCase{.name = name,
                      .attributes = ToAttributes(ReshapeAttributes{std::move(shape)}),
                      .inputs = {Samples(std::move(from))},
                      .samples = 3,
                      .tolerance = 0,
                      .bfloat16_tolerance = 0};
    };
    return {of("flatten", {105}, {5, 7, 3}), of("unflatten", {4, 3, 11}, {132}),
            of("one_number", {}, {1})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const ReshapeAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 0);
    if (!status.ok()) return status;
    const absl::StatusOr<int64_t> elements = CheckedElements(attributes.shape);
    if (!elements.ok()) return elements.status();
    const ValueType y = ActivationType(Shape(attributes.shape));
    if (*elements == inputs[0].shape.elements()) return std::vector<ValueType>{y};
    return absl::InvalidArgumentError(
        absl::StrCat("x is ", FormatType(inputs[0]), " of ", inputs[0].shape.elements(),
                     " numbers a sample; must have ", *elements, ", as ", FormatType(y), " has"));
  }
  Cost CostOfCall(const ReshapeAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const ReshapeAttributes&, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const ReshapeAttributes back{writer.input_type(0).shape.extents()};
    writer.Contribute(0, writer.Emit("reshape", ToAttributes(back), {writer.OutputGradient(0)})[0]);
  }
};

}  // namespace

OperationList ReshapeOperations() {
  static const Reshape reshape;
  return {&reshape};
}

}  // namespace stagecoach
