#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/listed.h"
#include "base/named_list.h"
#include "network/objective_kind.h"

namespace stagecoach {

// Each has a file in network/objectives, which defines `const ObjectiveKind*
// CrossEntropyObjectiveKind()`, and a message in proto/stagecoach/v1/networks.proto.
STAGECOACH_LISTED(Giver<const ObjectiveKind*>, ObjectiveKind, CrossEntropy, MeanSquaredError)

namespace {

const NamedList<ObjectiveKind>& Objectives() {
  static const auto* const list =
      new NamedList<ObjectiveKind>("objective", CallEach(kListedObjectiveKind));
  return *list;
}

}  // namespace

const std::vector<const ObjectiveKind*>& AllObjectiveKinds() { return Objectives().all(); }

absl::StatusOr<const ObjectiveKind*> FindObjectiveKind(std::string_view name) {
  return Objectives().Find(name);
}

namespace {

// Of the targets first, then of the other inputs.
absl::StatusOr<WireId> ChooseTargets(const ObjectiveKind& kind, const Network& network,
                                     const std::string& path) {
  std::vector<WireId> candidates = {network.objective.targets};
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    candidates.emplace_back(static_cast<int32_t>(i));
  }
  const bool ids = kind.TargetElement() == Element::kIds;
  for (const WireId id : candidates) {
    if ((network.wire(id).type.element == Element::kIds) == ids) return id;
  }
  return FieldError(
      path, std::string(kind.name()),
      ids ? "compares with classes, and the data of this network has none: take another "
            "objective"
          : "compares with numbers, and the data of this network has only ids: take "
            "cross_entropy");
}

KindSpec DefaultObjective(const Network& network) {
  KindSpec spec;
  spec.kind = CrossEntropyObjectiveKind()->name();
  spec.attributes = CrossEntropyObjectiveKind()->Defaults();
  // A sample has one, or each of its pixels has.
  const bool text = network.wire(network.objective.targets).type.shape.rank() == 1;
  spec.attributes.Set("no_accuracy", text);
  return spec;
}

}  // namespace

absl::Status SetObjective(const KindSpec& given, const std::string& path, Network* network) {
  KindSpec spec = given;
  if (spec.kind.empty()) spec = DefaultObjective(*network);
  ASSIGN_OR_RETURN(const ObjectiveKind* const kind, Annotate(FindObjectiveKind(spec.kind), path));
  const Objective ends = network->objective;  // what the network's kind said
  ASSIGN_OR_RETURN(const WireId targets, ChooseTargets(*kind, *network, path));
  ASSIGN_OR_RETURN(Objective objective,
                   kind->Build(spec.attributes, absl::StrCat(path, ".", spec.kind)));
  objective.output = ends.output;
  objective.auxiliary = ends.auxiliary;
  objective.auxiliary_weight = ends.auxiliary_weight;
  objective.targets = targets;
  objective.target_type = network->wire(targets).type;
  objective.target_type.element = kind->TargetElement();
  network->objective = objective;
  return FinishObjective(path, ObjectivePaths(absl::StrCat(path, ".", spec.kind)), network);
}

}  // namespace stagecoach
