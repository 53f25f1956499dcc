#include "network/objectives/cross_entropy.h"

#include "base/status.h"
#include "network/objective_kind.h"
#include "operations/cross_entropy.h"

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
    CrossEntropyAttributes attributes{
        .label_smoothing = spec.label_smoothing, .accuracy = !spec.no_accuracy, .top = spec.top};
    Objective objective{.operation = "cross_entropy"};
    if (spec.ignore_index != CrossEntropySpec::kNothingIgnored) {
      attributes.ignore_index = spec.ignore_index;
      objective.ignored = spec.ignore_index;
    }
    objective.attributes = ToAttributes(attributes);
    return objective;
  }
};

}  // namespace

const ObjectiveKind* CrossEntropyKind() {
  static const CrossEntropyObjective kind;
  return &kind;
}

}  // namespace stagecoach
