#include "plan/cost_model.h"

#include <map>

#include "network/cost.h"
#include "plan/saturate.h"

namespace stagecoach {

namespace {

LayerCost CostOf(const ExpandedLayer& layer, DType activation) {
  const LayerLists& lists = *layer.lists;
  const ListCost flops = CostOfLists(lists);
  const ListMemory bytes = MemoryOfLists(lists, activation);
  LayerCost cost{.products = flops.products,
                 .forward_flops = flops.forward_flops,
                 .backward_flops = flops.backward_flops,
                 .boundary_bytes = bytes.outputs,
                 .stash_bytes = bytes.stash,
                 .scratch_bytes = bytes.backward_scratch,
                 .forward_bytes = bytes.forward_alone,
                 .forward_kept_bytes = bytes.forward,
                 .keeps_input = bytes.keeps_inputs};
  for (const ParameterSpec& parameter : layer.parameters) {
    cost.parameters += parameter.shape.elements();
  }
  return cost;
}

}  // namespace

std::vector<LayerCost> ModelCosts(const ExpandedModel& model) {
  const DType activation = ComputeDType(model.precision);
  std::map<const LayerLists*, LayerCost> known;  // equal layers share their lists
  std::vector<LayerCost> costs;
  costs.reserve(model.layers.size());
  for (const ExpandedLayer& layer : model.layers) {
    auto found = known.find(layer.lists.get());
    if (found == known.end()) {
      found = known.emplace(layer.lists.get(), CostOf(layer, activation)).first;
    }
    costs.push_back(found->second);
  }
  return costs;
}

double ModelFlopsPerToken(const ExpandedModel& model) {
  double products = 0;
  for (const LayerCost& cost : ModelCosts(model)) products += static_cast<double>(cost.products);
  return 3.0 * products / static_cast<double>(model.context);
}

int64_t StageMemory::total() const {
  return SaturatingAdd(SaturatingAdd(parameters, gradients), SaturatingAdd(optimizer, activations));
}

}  // namespace stagecoach
