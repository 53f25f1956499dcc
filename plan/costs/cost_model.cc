#include "plan/costs/cost_model.h"

#include <map>

#include "base/numbers/saturate.h"
#include "network/lists/cost.h"
#include "network/passes/tied.h"

namespace stagecoach {

namespace {

LayerCost CostOf(const NetworkLayer& layer) {
  const ListCost flops = CostOfLists(*layer.lists);
  LayerCost cost{.products = flops.products,
                 .forward_flops = flops.forward_flops,
                 .backward_flops = flops.backward_flops};
  bool frozen = !layer.lists->output_gradients.empty() && !layer.lists->output_gradients[0].valid();
  for (const ParameterSpec& parameter : layer.parameters) frozen = frozen || !parameter.trained;
  cost.trained_products = frozen ? flops.products + flops.backward_products : 3 * flops.products;
  return cost;
}

}  // namespace

std::vector<LayerCost> ModelCosts(const Network& network) {
  std::map<const LayerLists*, LayerCost> known;  // equal layers share their lists
  std::vector<LayerCost> costs;
  costs.reserve(network.layers.size());
  for (const NetworkLayer& layer : network.layers) {
    auto found = known.find(layer.lists.get());
    if (found == known.end()) found = known.emplace(layer.lists.get(), CostOf(layer)).first;
    costs.push_back(found->second);
    costs.back().parameters =
        OwnElements(layer);  // those that share their lists may be tied or not
  }
  return costs;
}

double ModelFlopsPerToken(const Network& network) {
  double products = 0;
  for (const LayerCost& cost : ModelCosts(network)) {
    products += static_cast<double>(cost.trained_products);
  }
  return products / static_cast<double>(network.targets());
}

int64_t StageMemory::total() const {
  return SaturatingAdd(SaturatingAdd(parameters, gradients), SaturatingAdd(optimizer, activations));
}

}  // namespace stagecoach
