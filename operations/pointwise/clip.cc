#include "operations/pointwise/clip.h"

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Clip final : public OperationOf<ClipAttributes> {
 public:
  std::string_view name() const override { return "clip"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    // Distinct values are odd multiples of 0.015. Finite differences need them away from the limit.
    const auto with = [](std::string name, double limit, Shape shape, int64_t samples) {
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(ClipAttributes{limit}),
                      .inputs = {Samples(std::move(shape), Fill::kDistinct)},
                      .samples = samples,
                      .tolerance = 0};
    };
    CallCase diverged = with("diverged", 0.75, {7, 5}, 2);
    diverged.inputs = {Samples({7, 5}, Fill::kDiverged)};
    diverged.differentiable = false;
    return {with("odd", 0.3, {7, 5}, 2), with("long", 6, {11, 137}, 3),
            with("all_inside", 30, {3, 5, 2}, 2), std::move(diverged)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const ClipAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 0);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const ClipAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kClipFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const ClipAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    writer.Contribute(0, writer.Emit("clip_gradient", ToAttributes(attributes),
                                     {writer.OutputGradient(0), writer.input(0)})[0]);
  }
};

class ClipGradient final : public OperationOf<ClipAttributes> {
 public:
  std::string_view name() const override { return "clip_gradient"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const ClipAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "x"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 0);
    if (status.ok()) status = CheckType("x", inputs[1], inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const ClipAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kClipFlops.backward * TypeElements(types.outputs[0], samples)};
  }
};

}  // namespace

OperationList ClipOperations() {
  static const Clip clip;
  static const ClipGradient gradient;
  return {&clip, &gradient};
}

}  // namespace stagecoach
