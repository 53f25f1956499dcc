// add: y = a + b, rounded once.
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Add final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "add"; }
  // The second first: by custom the branch, whose values nobody else has.
  std::vector<int> MayOverwrite(const Attributes&) const override { return {1, 0}; }
  std::vector<CallCase> Cases() const override {
    return {{.name = "vector", .inputs = {Samples({5}), Samples({5})}, .tolerance = 0},
            {.name = "image",
             .inputs = {Samples({17, 3, 11}), Samples({17, 3, 11})},
             .samples = 3,
             .tolerance = 0}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("add", inputs, {"a", "b"});
    if (status.ok()) status = CheckActivation("a", inputs[0], 0);
    if (status.ok()) status = CheckType("b", inputs[1], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kAddFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  // The gradient of a sum is handed on: no call.
  void WriteGradient(const NoAttributes&, GradientWriter& writer) const override {
    for (const int i : {0, 1}) {
      if (writer.Wants(i)) writer.Contribute(i, writer.OutputGradient(0));
    }
  }
};

}  // namespace

OperationList AddOperations() {
  static const Add add;
  return {&add};
}

}  // namespace stagecoach
