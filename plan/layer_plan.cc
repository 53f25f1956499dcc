#include <algorithm>

#include "plan/plan.h"

namespace stagecoach {

std::vector<LayerPlan> PlanLayers(const Network& network) {
  const std::vector<LayerCost> costs = ModelCosts(network);
  const std::vector<int64_t> cuts = CutBytes(network);
  const std::vector<int> last_reader = LastReaders(network);
  std::vector<LayerPlan> layers;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const NetworkLayer& layer = network.layers[i];
    const bool tied = std::any_of(layer.parameters.begin(), layer.parameters.end(),
                                  [](const ParameterSpec& parameter) { return parameter.tied(); });
    LayerPlan plan{.label = layer.label + (tied ? ", tied" : ""),
                   .outputs = {},
                   .parameters = costs[i].parameters,
                   .forward_flops = costs[i].forward_flops,
                   .backward_flops = costs[i].backward_flops,
                   .cut_bytes = cuts[i],
                   .own_cut_bytes = 0};
    for (const WireId id : layer.outputs) {
      plan.outputs.push_back(network.wire(id).type);
      const bool goes_on = last_reader[static_cast<size_t>(id.value)] > layer.index;
      if (goes_on && !network.IsInput(id)) plan.own_cut_bytes += network.WireBytes(id);
    }
    layers.push_back(std::move(plan));
  }
  return layers;
}

}  // namespace stagecoach
