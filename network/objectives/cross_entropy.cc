#include "network/objectives/cross_entropy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/objective_kind.h"
#include "operations/losses/cross_entropy.h"

namespace stagecoach {
namespace {

class CrossEntropyObjective final : public ObjectiveKind {
 public:
  std::string_view name() const override { return CrossEntropySpec::kKind; }
  Attributes Defaults() const override { return ToAttributes(CrossEntropySpec()); }
  Element TargetElement() const override { return Element::kIds; }
  absl::StatusOr<Objective> Build(const Attributes& fields,
                                  const std::string& path) const override {
    ASSIGN_OR_RETURN(const CrossEntropySpec spec,
                     FromAttributes<CrossEntropySpec>(fields, path + "."));
    CrossEntropyAttributes attributes{.label_smoothing = spec.label_smoothing,
                                      .accuracy = !spec.no_accuracy,
                                      .top = spec.top,
                                      .mean_iou = spec.mean_iou,
                                      .per_class = spec.per_class};
    RETURN_IF_ERROR(CheckClassWeights(spec, path));
    if (spec.per_class && spec.no_accuracy && !spec.mean_iou) {
      return FieldError(path + ".per_class", "true",
                        "needs something to measure of each class: leave no_accuracy out, or set "
                        "mean_iou");
    }
    Objective objective{.operation = "cross_entropy"};
    objective.class_weights.assign(spec.class_weights.begin(), spec.class_weights.end());
    attributes.weighted = !spec.class_weights.empty();
    if (spec.ignore_index != CrossEntropySpec::kNothingIgnored) {
      attributes.ignore_index = spec.ignore_index;
      objective.ignored = spec.ignore_index;
    }
    objective.attributes = ToAttributes(attributes);
    return objective;
  }

 private:
  // PyTorch's smoothing weighs each class's share of a target by that class's weight: a weight of
  // the target alone, which is what a loss takes here, cannot say that.
  static absl::Status CheckClassWeights(const CrossEntropySpec& spec, const std::string& path) {
    if (spec.class_weights.empty() || spec.label_smoothing == 0) return absl::OkStatus();
    return FieldError(path + ".label_smoothing", absl::StrCat(spec.label_smoothing),
                      "must be 0 with class_weights: leave one of the two out");
  }
};

}  // namespace

const ObjectiveKind* CrossEntropyObjectiveKind() {
  static const CrossEntropyObjective kind;
  return &kind;
}

}  // namespace stagecoach
