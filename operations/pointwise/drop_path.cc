#include "operations/pointwise/drop_path.h"

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class DropPath final : public OperationOf<DropPathAttributes> {
 public:
  std::string_view name() const override { return "drop_path"; }
  int64_t Drawn(const Attributes&, const CallTypes&) const override { return 1; }
  EvaluationForm Evaluation(const Attributes& attributes) const override {
    return {.identity = true, .attributes = attributes};
  }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, DropPathAttributes attributes, Shape shape) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples(std::move(shape))},
                      .samples = 13,
                      .tolerance = 0};
    };
    return {with("vector", {.rate = 0.25, .draw = 3}, {7}),
            with("image", {.rate = 0.5}, {5, 3, 11}),
            with("blocks", {.rate = 0.5, .draw = 1}, {19, 17, 10})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const DropPathAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("drop_path", inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 0);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const DropPathAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const DropPathAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    writer.Contribute(0, writer.Emit("drop_path", ToAttributes(DropPathAttributes(attributes)),
                                     {writer.OutputGradient(0)})[0]);
  }
};

}  // namespace

OperationList DropPathOperations() {
  static const DropPath drop_path;
  return {&drop_path};
}

}  // namespace stagecoach
