// FinishObjective: what an objective may be, whoever gave it.
#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/status.h"
#include "network/objective_kind.h"
#include "operations/catalogue.h"
#include "operations/loss_types.h"

namespace stagecoach {
namespace {

absl::Status CheckOutput(const Network& network, const std::string& path,
                         const std::string& ignored_path) {
  const int64_t classes = network.input(network.objective.targets).classes;
  const ValueType& output = network.wire(network.objective.output).type;
  if (classes == 0) {
    if (output.shape == network.objective.target_type.shape) return absl::OkStatus();
    const std::string& name = network.input(network.objective.targets).name;
    return FieldError(path, absl::StrCat("the last layer gives ", FormatType(output)),
                      absl::StrCat("it must give what it is compared with, ", name, ", which is ",
                                   FormatType(network.objective.target_type)));
  }
  if (network.objective.ignored.value_or(0) >= classes) {
    return FieldError(ignored_path, absl::StrCat(*network.objective.ignored),
                      absl::StrCat("must be below the ", classes, " classes"));
  }
  if (output.shape.rank() > 0 && network.classes() == classes) return absl::OkStatus();
  return FieldError(path, absl::StrCat("the last layer gives ", FormatType(output)),
                    absl::StrCat("it must give logits of the ", classes,
                                 " classes: end with linear: {out: ", classes,
                                 "}, on images behind flatten or global_pool"));
}

// With the gradient and without.
absl::Status CheckTypes(const Operation& loss, const Network& network) {
  const Objective& objective = network.objective;
  std::vector<ValueType> inputs = {network.wire(objective.output).type, objective.target_type};
  RETURN_IF_ERROR(loss.Types(objective.attributes, inputs, {}).status());
  Attributes training = objective.attributes;
  training.Set("gradient", true);
  inputs.push_back(ScaleType());
  return loss.Types(training, inputs, {}).status();
}

}  // namespace

absl::Status FinishObjective(const std::string& path, const std::string& ignored_path,
                             Network* network) {
  Objective& objective = network->objective;
  ASSIGN_OR_RETURN(const Operation* const loss, Annotate(FindOperation(objective.operation), path));
  RETURN_IF_ERROR(Annotate(loss->CheckAttributes(objective.attributes), path));
  objective.sums = loss->Sums(objective.attributes);
  if (objective.sums.size() < 2 || objective.sums[0] != "loss" || objective.sums[1] != "terms") {
    return FieldError(path, objective.operation, "must be a loss");
  }
  RETURN_IF_ERROR(CheckOutput(*network, path, ignored_path));
  return Annotate(CheckTypes(*loss, *network), path);
}

}  // namespace stagecoach
