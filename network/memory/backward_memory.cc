// The way back through a cell: gradients in their buffers, stashes, and the peaks of both together.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "network/memory/cell_layers.h"

namespace stagecoach {
namespace {

// Whose gradients lie in which memory: a sum hands on what came in to all that it is the sum of.
class Gradients {
 public:
  Gradients(const WireSizes& sizes, size_t wires) : sizes_(sizes), buffer_of_(wires, -1) {}

  int New(WireId id) {
    buffers_.push_back({sizes_.Bytes(id), 0});
    return static_cast<int>(buffers_.size()) - 1;
  }
  void Keep(int buffer) {
    Buffer& held = buffers_[static_cast<size_t>(buffer)];
    if (held.holders++ == 0) bytes_ += held.bytes;
  }
  void Hold(WireId id, int buffer) {
    Keep(buffer);
    At(id) = buffer;
  }
  void Drop(WireId id) {
    if (At(id) >= 0) Release(At(id));
    At(id) = -1;
  }
  void Release(int buffer) {
    Buffer& held = buffers_[static_cast<size_t>(buffer)];
    if (--held.holders == 0) bytes_ -= held.bytes;
  }
  int Of(WireId id) const { return buffer_of_[static_cast<size_t>(id.value)]; }
  bool IsShared(int buffer) const { return buffers_[static_cast<size_t>(buffer)].holders > 1; }
  int64_t bytes() const { return bytes_; }

  // Another share, which is held already; the peak meanwhile.
  int64_t Add(WireId id, int share) {
    int64_t peak = bytes_;
    if (At(id) < 0) {
      At(id) = share;
      return peak;
    }
    if (IsShared(At(id))) {  // the sum has a place of its own
      const int sum = New(id);
      Keep(sum);
      peak = bytes_;
      Release(At(id));
      At(id) = sum;
    }
    Release(share);
    return peak;
  }

 private:
  struct Buffer {
    int64_t bytes = 0;
    int holders = 0;
  };
  int& At(WireId id) { return buffer_of_[static_cast<size_t>(id.value)]; }

  const WireSizes& sizes_;
  std::vector<int> buffer_of_;  // by wire; -1: none
  std::vector<Buffer> buffers_;
  int64_t bytes_ = 0;
};

// A way back through the cell: what is held at the time, and by whom.
struct WayBack {
  explicit WayBack(const CellLayers& cell)
      : stashes(cell.KeptStashes()), gradients(cell.sizes, cell.network.wires.size()) {}
  void Note(int64_t beyond) { peak = std::max(peak, bytes() + beyond); }
  int64_t bytes() const { return stashes.bytes() + gradients.bytes(); }
  Stashes stashes;
  Gradients gradients;
  int64_t peak = 0;
};

// What a layer keeps from its input part to its weight part; gradients with their buffers.
struct ForWeights {
  std::set<WireId> wires;
  std::map<ValueId, int> gradients;
  int64_t inner = 0;
};

// Values that somebody else holds too, so that the list's last read of them frees nothing.
std::vector<ValueId> HeldElsewhere(const NetworkLayer& layer, const WayBack& way,
                                   const std::map<ValueId, int>& buffers) {
  std::vector<ValueId> staying;
  ForEachWire(layer, [&](WireId id, ValueId value) {
    if (way.stashes.IsShared(id)) staying.push_back(value);
  });
  for (const auto& [value, buffer] : buffers) {
    if (way.gradients.IsShared(buffer)) staying.push_back(value);
  }
  return staying;
}

ForWeights KeepForWeights(const CellLayers& cell, const NetworkLayer& layer,
                          const std::map<ValueId, int>& buffers, WayBack* way) {
  const LayerLists& lists = *layer.lists;
  ForWeights kept;
  kept.wires = WiresAmong(layer, lists.weight_stash);
  for (const ValueId value : lists.weight_stash) {
    if (Holds(lists.inputs, value) || Holds(lists.outputs, value)) continue;
    const auto gradient = buffers.find(value);
    if (gradient == buffers.end()) {
      kept.inner += cell.Bytes(layer, value);
    } else {
      kept.gradients.insert(*gradient);
    }
  }
  for (const WireId id : kept.wires) way->stashes.Keep(id);
  for (const auto& [value, buffer] : kept.gradients) way->gradients.Keep(buffer);
  way->stashes.KeepInner(kept.inner);
  return kept;
}

// kept: null for both parts together; else of the input part alone, and gets what that leaves.
void WalkLayerBack(CellLayers& cell, const NetworkLayer& layer, std::vector<ForWeights>* kept,
                   WayBack* way) {
  const LayerLists& lists = *layer.lists;
  std::map<ValueId, int> buffers;
  for (size_t k = 0; k < layer.outputs.size(); ++k) {
    const ValueId gradient = lists.output_gradients[k];
    if (gradient.valid()) buffers[gradient] = way->gradients.Of(layer.outputs[k]);
  }
  way->Note(cell.Peak(layer, kept == nullptr ? &LayerLists::backward : &LayerLists::input_gradient,
                      HeldElsewhere(layer, *way, buffers)));
  std::vector<std::pair<WireId, int>> shares;
  for (size_t k = 0; k < layer.inputs.size(); ++k) {
    const ValueId gradient = lists.input_gradients[k];
    if (!gradient.valid()) continue;
    const auto [found, is_new] = buffers.try_emplace(gradient, -1);
    if (is_new) found->second = way->gradients.New(layer.inputs[k]);
    way->gradients.Keep(found->second);
    shares.emplace_back(layer.inputs[k], found->second);
  }
  if (kept != nullptr) kept->push_back(KeepForWeights(cell, layer, buffers, way));
  for (const WireId id : WiresAmong(layer, lists.stash)) way->stashes.Drop(id);
  way->stashes.DropInner(cell.InnerStash(layer));
  for (const WireId id : layer.outputs) way->gradients.Drop(id);
  for (const auto& [id, buffer] : shares) {
    const int64_t meanwhile = way->gradients.Add(id, buffer);
    way->peak = std::max(way->peak, way->stashes.bytes() + meanwhile);
  }
}

WayBack WalkBack(CellLayers& cell, const CellWires& wires, std::vector<ForWeights>* kept) {
  WayBack way(cell);
  for (const WireId id : wires.received_gradients) way.gradients.Hold(id, way.gradients.New(id));
  way.Note(0);
  for (int i = cell.last - 1; i >= cell.first; --i) WalkLayerBack(cell, cell.Layer(i), kept, &way);
  return way;
}

}  // namespace

void MeasureBackwards(CellLayers& cell, const CellWires& wires, CellMemory* memory) {
  memory->backward = WalkBack(cell, wires, nullptr).peak;
  std::vector<ForWeights> kept;  // from the last layer to the first, as the weight part goes
  WayBack way = WalkBack(cell, wires, &kept);
  memory->input_part = way.peak;
  const int64_t with_sent = way.bytes();
  for (const WireId id : wires.sent_gradients) way.gradients.Drop(id);
  memory->for_weights = way.bytes();
  memory->sent_beside_weights = with_sent - memory->for_weights;
  way.peak = way.bytes();
  for (size_t k = 0; k < kept.size(); ++k) {
    const NetworkLayer& layer = cell.Layer(cell.last - 1 - static_cast<int>(k));
    way.Note(cell.Peak(layer, &LayerLists::weight_gradient,
                       HeldElsewhere(layer, way, kept[k].gradients)));
    for (const WireId id : kept[k].wires) way.stashes.Drop(id);
    for (const auto& [value, buffer] : kept[k].gradients) way.gradients.Release(buffer);
    way.stashes.DropInner(kept[k].inner);
  }
  memory->weight_part = way.peak;
}

}  // namespace stagecoach
