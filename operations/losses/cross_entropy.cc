#include "operations/losses/cross_entropy.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/losses/loss_types.h"
#include "operations/row_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

ValueType TargetsType(const ValueType& logits) {
  ValueType targets = StatisticsType(logits);
  targets.element = Element::kIds;
  return targets;
}

class CrossEntropy final : public OperationOf<CrossEntropyAttributes> {
 public:
  std::string_view name() const override { return "cross_entropy"; }
  std::vector<int> MayOverwrite(const Attributes& attributes) const override {
    return Get(attributes).gradient ? std::vector<int>{0} : std::vector<int>{};
  }
  std::vector<std::string> Sums(const Attributes& attributes) const override {
    const CrossEntropyAttributes values = Get(attributes);
    std::vector<std::string> names = {"loss", "terms"};
    if (values.accuracy) names.emplace_back("accuracy");
    if (values.top > 0) names.push_back(absl::StrCat("top_", values.top));
    return names;
  }
  std::vector<CallCase> Cases() const override {
    std::vector<CallCase> all;
    const auto add = [&](std::string name, CrossEntropyAttributes attributes, Shape logits,
                         Fill fill = Fill::kNormal, Fill ids = Fill::kIds, int64_t more_ids = 0) {
      const int64_t classes = logits.back();
      std::vector<int64_t> rows = logits.extents();
      rows.pop_back();
      CallCase evaluation{.name = std::move(name),
                          .attributes = ToAttributes(attributes),
                          .inputs = {Samples(std::move(logits), fill),
                                     IdsBelow(classes + more_ids, Shape(std::move(rows)))},
                          .samples = 3,
                          .differentiable = false};
      evaluation.inputs[1].fill = ids;
      if (attributes.weighted) {
        evaluation.inputs.push_back(LossWeights(evaluation.inputs[1].type));
      }
      attributes.gradient = true;
      for (CallCase& made : LossCases(evaluation, ToAttributes(attributes))) {
        all.push_back(std::move(made));
      }
    };
    add("tokens", {}, {7, 33});
    add("labels", {.accuracy = true, .top = 5}, {19});
    add("smooth", {.label_smoothing = 0.1, .accuracy = true}, {5, 4, 9});
    add("one_class_ignored", {.label_smoothing = 0.2, .ignore_index = 1, .top = 2}, {23, 4});
    const CrossEntropyAttributes measured{.label_smoothing = 0.1, .accuracy = true, .top = 2};
    CrossEntropyAttributes ignoring = measured;
    ignoring.ignore_index = 7;
    add("no_class_ignored", ignoring, {33, 7}, Fill::kNormal, Fill::kIds, 1);
    ignoring.ignore_index = -1;
    add("out_of_range", ignoring, {33, 7}, Fill::kNormal, Fill::kAnyIds, 2);
    add("ties", measured, {33, 7}, Fill::kTied);
    add("diverged", measured, {33, 7}, Fill::kDiverged);
    add("weighted", {.weighted = true}, {7, 33});
    CrossEntropyAttributes weighted = measured;
    weighted.weighted = true;
    add("weighted_labels", weighted, {19});
    weighted.ignore_index = 7;
    add("weighted_no_class_ignored", weighted, {33, 7}, Fill::kNormal, Fill::kIds, 1);
    weighted.ignore_index = -1;
    add("weighted_out_of_range", weighted, {33, 7}, Fill::kNormal, Fill::kAnyIds, 2);
    add("weighted_diverged", weighted, {33, 7}, Fill::kDiverged);
    add("masks", {.accuracy = true, .mean_iou = true}, {5, 4, 3});
    add("per_class", {.per_class = true}, {33, 7});
    CrossEntropyAttributes counted = measured;
    counted.mean_iou = counted.per_class = true;
    add("counted_ties", counted, {33, 7}, Fill::kTied);
    add("counted_diverged", counted, {33, 7}, Fill::kDiverged);
    counted.ignore_index = 2;
    add("counted_ignored", counted, {33, 300});
    counted.weighted = true;
    counted.ignore_index = -1;
    add("counted_weighted_out_of_range", counted, {33, 7}, Fill::kNormal, Fill::kAnyIds, 2);
    return all;
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const CrossEntropyAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    const LossForm form{attributes.weighted, attributes.gradient};
    absl::Status status = CheckLossOperands(name(), inputs, "logits", "targets", form);
    if (status.ok()) status = CheckActivation("logits", inputs[0], 1);
    if (!status.ok()) return status;
    if (const int64_t classes = inputs[0].shape.back(); attributes.top > classes) {
      return absl::InvalidArgumentError(absl::StrCat("attribute top: ", attributes.top,
                                                     "; must be <= ", classes, ", the classes"));
    }
    status = CheckType("targets", inputs[1], TargetsType(inputs[0]));
    if (status.ok()) status = CheckLossTypes(inputs, form);
    if (status.ok()) status = CheckCounted(attributes, inputs[0].shape.back());
    if (!status.ok()) return status;
    const int64_t counts = attributes.counts_classes() ? kClassCounts * inputs[0].shape.back() : 0;
    return LossOutputs(attributes.gradient, inputs[0], attributes.sums() + counts);
  }
  static absl::Status CheckCounted(const CrossEntropyAttributes& attributes, int64_t classes) {
    const char* const flag = attributes.mean_iou ? "mean_iou" : "per_class";
    if (classes <= kMostCountedClasses || !(attributes.mean_iou || attributes.per_class)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute ", flag, ": true; must be false with ", classes, " classes: of more than ",
        kMostCountedClasses, " none is counted on its own"));
  }
  Cost CostOfCall(const CrossEntropyAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kSoftmaxFlops.forward * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList CrossEntropyOperations() {
  static const CrossEntropy loss;
  return {&loss};
}

}  // namespace stagecoach
