#include "operations/pointwise/dropout.h"

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Dropout final : public OperationOf<DropoutAttributes> {
 public:
  std::string_view name() const override { return "dropout"; }
  int64_t Drawn(const Attributes&, const CallTypes& types) const override {
    return TypeElements(types.inputs[0], 1);
  }
  EvaluationForm Evaluation(const Attributes& attributes) const override {
    return {.identity = true, .attributes = attributes};
  }
  std::vector<int> MayOverwrite(const Attributes& attributes) const override {
    return Get(attributes).in_place ? std::vector<int>{0} : std::vector<int>{};
  }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const DropoutAttributes& attributes, Shape shape) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples(std::move(shape))},
                      .tolerance = 0};
    };
    return {with("a_tenth", {.rate = 0.1, .draw = 3}, {7, 5}),
            with("half_in_place", {.rate = 0.5, .in_place = true}, {13, 11})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const DropoutAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("dropout", inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 0);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const DropoutAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kDropoutFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const DropoutAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    DropoutAttributes again = attributes;
    again.in_place = false;
    writer.Contribute(0,
                      writer.Emit("dropout", ToAttributes(again), {writer.OutputGradient(0)})[0]);
  }
};

}  // namespace

OperationList DropoutOperations() {
  static const Dropout dropout;
  return {&dropout};
}

}  // namespace stagecoach
