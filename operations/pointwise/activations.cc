// Operations of one value, element by element, each with its gradient:
//   gelu  y = x * Phi(x), in its tanh form
//   gelu_erf  the same with Phi(x) = (1 + erf(x / sqrt(2))) / 2 itself
//   silu  y = x / (1 + exp(-x))
//   relu  y = max(x, 0); its gradient reads y, so that y may take the place of x
#include <string>

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

struct Activation {
  std::string name;
  ElementwiseFlops flops;
  bool gradient_reads_y = false;
  bool may_overwrite = false;  // in both directions
  std::string gradient() const { return name + "_gradient"; }
};

std::vector<int> First(bool may) { return may ? std::vector<int>{0} : std::vector<int>{}; }

class Forward final : public OperationOf<NoAttributes> {
 public:
  explicit Forward(const Activation& activation)
      : activation_(activation), gradient_(activation.gradient()) {}
  std::string_view name() const override { return activation_.name; }
  std::vector<int> MayOverwrite(const Attributes&) const override {
    return First(activation_.may_overwrite);
  }
  std::vector<CallCase> Cases() const override {
    // Finite differences need relu's inputs away from 0.
    return {{.name = "odd", .inputs = {Samples({7, 5}, Fill::kDistinct)}},
            {.name = "long", .inputs = {Samples({101, 137}, Fill::kShifted)}, .samples = 3},
            {.name = "image", .inputs = {Samples({3, 5, 2}, Fill::kDistinct)}}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 0);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = activation_.flops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const NoAttributes&, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const ValueId read = activation_.gradient_reads_y ? writer.output(0) : writer.input(0);
    writer.Contribute(0, writer.Emit(gradient_, {}, {writer.OutputGradient(0), read})[0]);
  }

  const Activation activation_;
  const std::string gradient_;
};

// dx = dy * f'(x).
class Backward final : public OperationOf<NoAttributes> {
 public:
  explicit Backward(const Activation& activation)
      : activation_(activation), name_(activation.gradient()) {}
  std::string_view name() const override { return name_; }
  std::vector<int> MayOverwrite(const Attributes&) const override {
    return First(activation_.may_overwrite);
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    const char* const read = activation_.gradient_reads_y ? "y" : "x";
    absl::Status status = CheckOperands(name(), inputs, {"dy", read});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 0);
    if (status.ok()) status = CheckType(read, inputs[1], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = activation_.flops.backward * TypeElements(types.outputs[0], samples)};
  }

  const Activation activation_;
  const std::string name_;
};

}  // namespace

OperationList ActivationsOperations() {
  static const auto* const all = new OperationList([] {
    OperationList list;
    for (const Activation& activation :
         {Activation{"gelu", kGeluFlops}, Activation{"gelu_erf", kGeluFlops},
          Activation{.name = "silu", .flops = kSiluFlops, .may_overwrite = true},
          Activation{.name = "relu",
          .flops = kReluFlops,
          .gradient_reads_y = true,
          .may_overwrite = true}}) {
      list.push_back(new Forward(activation));
      list.push_back(new Backward(activation));
    }
    return list;
  }());
  return *all;
}

}  // namespace stagecoach
