#include "network/memory/cell_memory.h"

#include <algorithm>

#include "network/memory/cell_layers.h"

namespace stagecoach {
namespace {

// The cell's tuples, and its memory on the way forward.
class ForwardWalk {
 public:
  // head_follows: the cell has one layer more, which the loss runs.
  ForwardWalk(const Network& network, int first, int last, int64_t samples, bool head_follows)
      : cell_(network, first, last, samples),
        has_backward_(FirstTrainedLayer(network) < (head_follows ? last + 1 : last)),
        wires_(WiresOfCell(network, first, last)),
        last_reader_(network.wires.size(), -1),
        read_(network.wires.size(), 0),
        stasher_(network.wires.size(), -1) {
    for (int i = first; i < last; ++i) {
      const NetworkLayer& layer = cell_.Layer(i);
      for (const WireId id : layer.inputs) {
        At(last_reader_, id) = i;
        At(read_, id) = 1;
      }
      // The first layer that keeps it; a backward lets go of it behind that one.
      ForEachWire(layer, [&](WireId id, ValueId value) {
        if (At(stasher_, id) < 0 && Holds(layer.lists->stash, value)) At(stasher_, id) = i;
      });
    }
    // What rides past the layers to the loss is kept for it, as what they read is.
    const bool loss_follows = head_follows || last == static_cast<int>(network.layers.size());
    for (const WireId id : wires_.sent) {
      At(last_reader_, id) = last;
      if (loss_follows) At(read_, id) = 1;
    }
  }

  CellMemory Measure() {
    CellMemory memory;
    const auto each = [this](const std::vector<WireId>& ids) {
      std::vector<int64_t> bytes;
      bytes.reserve(ids.size());
      for (const WireId id : ids) bytes.push_back(cell_.sizes.Bytes(id));
      return bytes;
    };
    memory.loaded = each(wires_.loaded);
    for (const WireId id : wires_.loaded) memory.rounded.push_back(cell_.sizes.RoundedFrom(id));
    memory.received = each(wires_.received);
    memory.received_gradients = each(wires_.received_gradients);
    memory.sent = cell_.sizes.Bytes(wires_.sent);
    memory.sent_gradients = cell_.sizes.Bytes(wires_.sent_gradients);
    for (const WireId id : AllRead()) memory.read += cell_.sizes.Bytes(id);
    for (const WireId id : wires_.sent) {
      const bool made_here = !ComesIn(id);
      if (made_here || !ReadHere(id)) memory.sent_beside_read += cell_.sizes.Bytes(id);
      if (At(stasher_, id) < 0) memory.sent_beside_stash += cell_.sizes.Bytes(id);
      if (made_here || At(stasher_, id) < 0) memory.sent_beside_recompute += cell_.sizes.Bytes(id);
    }
    memory.stash = cell_.KeptStashes().bytes();
    const int64_t inputs = cell_.sizes.Bytes(wires_.loaded) + cell_.sizes.Bytes(wires_.received);
    memory.forward = PeakOfForward(inputs, &LayerLists::forward_alone, true);
    memory.kept = PeakOfForward(inputs, &LayerLists::forward, false);
    memory.recompute =
        PeakOfForward(memory.read, &LayerLists::forward, true);  // what rides past has left
    memory.evaluation = PeakOfForward(inputs, &LayerLists::evaluation, false);
    MeasureBackwards(cell_, wires_, &memory);
    return memory;
  }

 private:
  template <typename T>
  static T& At(std::vector<T>& values, WireId id) {
    return values[static_cast<size_t>(id.value)];
  }
  bool ComesIn(WireId id) const { return cell_.network.wire(id).maker < cell_.first; }
  bool ReadHere(WireId id) { return At(read_, id); }
  std::vector<WireId> AllRead() {
    std::vector<WireId> all = wires_.loaded;
    for (const WireId id : wires_.received) {
      if (ReadHere(id)) all.push_back(id);
    }
    return all;
  }

  int64_t PeakOfForward(int64_t alive, CallList LayerLists::*of, bool hold_inputs) {
    int64_t peak = alive;
    // Without a backward only states are folded, behind each layer, from what it has kept.
    const bool stays = of == &LayerLists::forward && has_backward_;
    for (int i = cell_.first; i < cell_.last; ++i) {
      const NetworkLayer& layer = cell_.Layer(i);
      const LayerLists& lists = *layer.lists;
      std::vector<ValueId> staying;
      for (size_t k = 0; k < layer.inputs.size(); ++k) {
        const WireId id = layer.inputs[k];
        const bool kept_before = stays && At(stasher_, id) >= 0 && At(stasher_, id) < i;
        if (At(last_reader_, id) > i || kept_before || (hold_inputs && ComesIn(id))) {
          staying.push_back(lists.inputs[k]);
        }
      }
      peak = std::max(peak, alive + cell_.Peak(layer, of, staying));
      for (const WireId id : layer.outputs) {
        if (!Holds(layer.inputs, id)) alive += cell_.sizes.Bytes(id);
      }
      if (stays) alive += cell_.InnerStash(layer);
      for (size_t k = 0; k < layer.inputs.size(); ++k) {
        const bool kept = stays && Holds(lists.stash, lists.inputs[k]);
        if (kept || Holds(staying, lists.inputs[k])) continue;
        alive -= cell_.sizes.Bytes(layer.inputs[k]);
      }
    }
    return std::max(peak, alive);
  }

  CellLayers cell_;
  const bool has_backward_;
  const CellWires wires_;
  std::vector<int> last_reader_;  // by wire: the last layer here; the cell's end if it goes on
  std::vector<char> read_;        // by wire: by a layer here, or by the loss
  std::vector<int> stasher_;      // by wire: the first layer here that keeps it; -1: none
};

}  // namespace

CellMemory MemoryOfCell(const Network& network, int first, int last, int64_t samples) {
  return ForwardWalk(network, first, last, samples, false).Measure();
}

CellMemory MemoryInFrontOfHead(const Network& network, int first, int64_t samples) {
  const int head = static_cast<int>(network.layers.size()) - 1;
  return ForwardWalk(network, first, head, samples, true).Measure();
}

}  // namespace stagecoach
