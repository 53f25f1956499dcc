#include "network/objectives/mean_squared_error.h"

#include "base/errors/status.h"
#include "network/objective_kind.h"
#include "operations/losses/mean_squared_error.h"

namespace stagecoach {
namespace {

class MeanSquaredErrorObjective final : public ObjectiveKind {
 public:
  std::string_view name() const override { return MeanSquaredErrorSpec::kKind; }
  Attributes Defaults() const override { return ToAttributes(MeanSquaredErrorSpec()); }
  Element TargetElement() const override { return Element::kFloat32; }
  absl::StatusOr<Objective> Build(const Attributes& fields,
                                  const std::string& path) const override {
    RETURN_IF_ERROR(FromAttributes<MeanSquaredErrorSpec>(fields, path + ".").status());
    return Objective{.operation = "mean_squared_error",
                     .attributes = ToAttributes(MeanSquaredErrorAttributes())};
  }
};

}  // namespace

const ObjectiveKind* MeanSquaredErrorObjectiveKind() {
  static const MeanSquaredErrorObjective kind;
  return &kind;
}

}  // namespace stagecoach
