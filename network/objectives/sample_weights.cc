// WithSampleWeights: a network that reads what its data source says of the samples' weights.
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/objective_kind.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {
namespace {

constexpr char kWeights[] = "weights";

void MoveUp(int32_t from, WireId* id) {
  if (id->value >= from) id->value += 1;
}

}  // namespace

absl::StatusOr<Network> WithSampleWeights(Network network, const std::string& path) {
  if (network.objective.attributes.Find("weighted") == nullptr) {
    return FieldError(path, "given",
                      network.objective.operation + " reads no weights of samples: leave it out");
  }
  CHECK(!network.InputNamed(kWeights).valid()) << "weights twice";
  const auto place = static_cast<int32_t>(network.inputs.size());
  network.inputs.push_back({kWeights, 0});
  network.wires.insert(network.wires.begin() + place, {.type = SampleWeightType()});
  for (NetworkLayer& layer : network.layers) {
    for (std::vector<WireId>* const wires : {&layer.inputs, &layer.outputs}) {
      for (WireId& id : *wires) MoveUp(place, &id);
    }
  }
  Objective& objective = network.objective;
  MoveUp(place, &objective.output);
  MoveUp(place, &objective.auxiliary);
  objective.weights = WireId(place);
  objective.attributes.Set("weighted", true);
  RETURN_IF_ERROR(FinishObjective(path, {}, &network));
  return network;
}

}  // namespace stagecoach
