#include "operations/losses/mean_squared_error.h"

#include <string>
#include <utility>

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/losses/loss_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class MeanSquaredError final : public OperationOf<MeanSquaredErrorAttributes> {
 public:
  std::string_view name() const override { return "mean_squared_error"; }
  std::vector<int> MayOverwrite(const Attributes& attributes) const override {
    return Get(attributes).gradient ? std::vector<int>{0} : std::vector<int>{};
  }
  std::vector<std::string> Sums(const Attributes&) const override { return {"loss", "terms"}; }
  std::vector<CallCase> Cases() const override {
    std::vector<CallCase> all;
    const auto add = [&](std::string name, const Shape& shape, bool weighted = false) {
      MeanSquaredErrorAttributes attributes{.weighted = weighted};
      CallCase evaluation{.name = std::move(name),
                          .attributes = ToAttributes(attributes),
                          .inputs = {Samples(shape), Statistics(shape, Fill::kNormal)},
                          .samples = 3,
                          .differentiable = false};
      if (weighted) evaluation.inputs.push_back(LossWeights(evaluation.inputs[1].type));
      attributes.gradient = true;
      for (CallCase& made : LossCases(evaluation, ToAttributes(attributes))) {
        all.push_back(std::move(made));
      }
    };
    add("odd", {7, 5});
    add("long", {101, 137});
    add("weighted", {7, 5}, true);
    add("weighted_long", {101, 137}, true);
    return all;
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const MeanSquaredErrorAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    const LossForm form{attributes.weighted, attributes.gradient};
    absl::Status status = CheckLossOperands(name(), inputs, "prediction", "target", form);
    if (status.ok()) status = CheckActivation("prediction", inputs[0], 0);
    if (!status.ok()) return status;
    status =
        CheckType("target", inputs[1], {Element::kFloat32, Leading::kSamples, inputs[0].shape});
    if (status.ok()) status = CheckLossTypes(inputs, form);
    if (!status.ok()) return status;
    return LossOutputs(attributes.gradient, inputs[0], 2);
  }
  Cost CostOfCall(const MeanSquaredErrorAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kSquaredErrorFlops * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList MeanSquaredErrorOperations() {
  static const MeanSquaredError loss;
  return {&loss};
}

}  // namespace stagecoach
