#include "network/memory/cell_layers.h"

#include "network/lists/cost.h"

namespace stagecoach {

// Equal layers share their lists.
int64_t CellLayers::Peak(const NetworkLayer& layer, CallList LayerLists::*of,
                         const std::vector<ValueId>& staying) {
  const LayerLists& lists = *layer.lists;
  const auto [found, is_new] = peaks_.try_emplace({&(lists.*of), staying}, 0);
  if (is_new) found->second = PeakOfList(lists, lists.*of, dtype, staying, samples);
  return found->second;
}

int64_t CellLayers::InnerStash(const NetworkLayer& layer) const {
  int64_t bytes = 0;
  for (const ValueId id : layer.lists->stash) {
    if (Holds(layer.lists->inputs, id) || Holds(layer.lists->outputs, id)) continue;
    bytes += Bytes(layer, id);
  }
  return bytes;
}

Stashes CellLayers::KeptStashes() const {
  Stashes stashes(sizes, network.wires.size());
  for (int i = first; i < last; ++i) {
    for (const WireId id : WiresAmong(Layer(i), Layer(i).lists->stash)) stashes.Keep(id);
    stashes.KeepInner(InnerStash(Layer(i)));
  }
  return stashes;
}

std::set<WireId> WiresAmong(const NetworkLayer& layer, const std::vector<ValueId>& values) {
  std::set<WireId> wires;
  ForEachWire(layer, [&](WireId id, ValueId value) {
    if (Holds(values, value)) wires.insert(id);
  });
  return wires;
}

}  // namespace stagecoach
