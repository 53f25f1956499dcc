// FinishObjective: what an objective may be, whoever gave it.
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/limits.h"
#include "network/objective_kind.h"
#include "operations/call_types.h"
#include "operations/catalogue.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {
namespace {

absl::Status CheckOutput(const Network& network, const std::string& path,
                         const ObjectivePaths& paths) {
  const int64_t classes = network.input(network.objective.targets).classes;
  const ValueType& output = network.wire(network.objective.output).type;
  if (classes == 0) {
    if (output.shape == network.objective.target_type.shape) return absl::OkStatus();
    const std::string& name = network.input(network.objective.targets).name;
    return FieldError(path, absl::StrCat("the last layer gives ", FormatType(output)),
                      absl::StrCat("it must give what it is compared with, ", name, ", which is ",
                                   FormatType(network.objective.target_type)));
  }
  // Masks mark what counts for nothing by an id of their own, as 255.
  const bool masks = network.objective.target_type.shape.rank() > 1;
  if (!masks && network.objective.ignored.value_or(0) >= classes) {
    return FieldError(paths.ignored, absl::StrCat(*network.objective.ignored),
                      absl::StrCat("must be below the ", classes, " classes"));
  }
  if (output.shape.rank() > 0 && network.classes() == classes) return absl::OkStatus();
  return FieldError(path, absl::StrCat("the last layer gives ", FormatType(output)),
                    absl::StrCat("it must give logits of the ", classes,
                                 " classes: end with linear: {out: ", classes,
                                 "}, on images behind flatten or global_pool"));
}

// It is compared by the same call as the output.
absl::Status CheckAuxiliary(const Network& network, const std::string& path) {
  const Objective& objective = network.objective;
  if (!objective.auxiliary.valid()) return absl::OkStatus();
  const ValueType& type = network.wire(objective.auxiliary).type;
  const ValueType& wanted = network.wire(objective.output).type;
  if (objective.auxiliary == objective.output || type != wanted) {
    return FieldError(
        path, absl::StrCat("the auxiliary output is ", FormatType(type)),
        absl::StrCat("must be a value beside the output, and as that ", FormatType(wanted)));
  }
  const double weight = objective.auxiliary_weight;
  if (weight >= kLeastAuxiliaryWeight && weight <= kMostAuxiliaryWeight) return absl::OkStatus();
  return FieldError(path, absl::StrCat("the auxiliary output weighs ", weight),
                    absl::StrCat("must be a number in [", kLeastAuxiliaryWeight, ", ",
                                 kMostAuxiliaryWeight, "]"));
}

absl::Status CheckClassWeights(const Network& network, const std::string& path) {
  const std::vector<float>& weights = network.objective.class_weights;
  if (weights.empty()) return absl::OkStatus();
  const int64_t classes = network.input(network.objective.targets).classes;
  if (static_cast<int64_t>(weights.size()) != classes) {
    return FieldError(path, absl::StrCat(weights.size(), " numbers"),
                      absl::StrCat("must be one for each of the ", classes, " classes"));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (IsLossWeight(weights[i])) continue;
    return FieldError(
        absl::StrCat(path, "[", i, "]"), absl::StrCat(weights[i]),
        absl::StrCat("must be 0 or a number in [", kLeastWeight, ", ", kMostWeight, "]"));
  }
  const std::optional<int64_t> ignored = network.objective.ignored;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0 && ignored != static_cast<int64_t>(i)) return absl::OkStatus();
  }
  return FieldError(path, ignored.has_value() ? "all 0 but of the ignored class" : "all 0",
                    "must have a class that counts: give it a weight above 0");
}

absl::Status CheckWeights(const Network& network, const std::string& path,
                          const ObjectivePaths& paths) {
  const Objective& objective = network.objective;
  if (objective.weighted() != objective.has("weighted")) {
    return FieldError(path, objective.operation,
                      "must be weighted if and only if there are weights");
  }
  if (const WireId id = objective.weights; id.valid()) {
    const ValueType wanted = SampleWeightType();
    if (network.wire(id).type != wanted) {
      return FieldError(path,
                        absl::StrCat("weights are \"", network.input(id).name, "\", ",
                                     FormatType(network.wire(id).type)),
                        absl::StrCat("must be ", FormatType(wanted)));
    }
  }
  return CheckClassWeights(network, paths.class_weights);
}

// With the gradient and without.
absl::Status CheckTypes(const Operation& loss, const Network& network) {
  const Objective& objective = network.objective;
  std::vector<ValueType> inputs = {network.wire(objective.output).type, objective.target_type};
  if (objective.weighted()) inputs.push_back(LossWeightsType(objective.target_type));
  RETURN_IF_ERROR(TypesOfCall(loss, objective.attributes, inputs, {}).status());
  Attributes training = objective.attributes;
  training.Set("gradient", true);
  inputs.push_back(ScaleType());
  return TypesOfCall(loss, training, inputs, {}).status();
}

}  // namespace

absl::Status FinishObjective(const std::string& path, const ObjectivePaths& paths,
                             Network* network) {
  Objective& objective = network->objective;
  ASSIGN_OR_RETURN(const Operation* const loss, Annotate(FindOperation(objective.operation), path));
  RETURN_IF_ERROR(Annotate(loss->CheckAttributes(objective.attributes), path));
  objective.sums = loss->Sums(objective.attributes);
  if (objective.sums.size() < 2 || objective.sums[0] != "loss" || objective.sums[1] != "terms") {
    return FieldError(path, objective.operation, "must be a loss");
  }
  RETURN_IF_ERROR(CheckOutput(*network, path, paths));
  RETURN_IF_ERROR(CheckAuxiliary(*network, path));
  RETURN_IF_ERROR(CheckWeights(*network, path, paths));
  return Annotate(CheckTypes(*loss, *network), path);
}

}  // namespace stagecoach
