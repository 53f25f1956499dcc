#include "network/memory/cell_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "network/lists/cost.h"
#include "network/memory/cell_holdings.h"

namespace stagecoach {
namespace {

template <typename Id>
bool Holds(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

class CellWalk {
 public:
  // head_follows: the cell has one layer more, which the loss runs.
  CellWalk(const Network& network, int first, int last, int64_t samples, bool head_follows)
      : network_(network),
        sizes_(network, samples),
        samples_(samples),
        dtype_(ComputeDType(network.precision)),
        first_(first),
        last_(last),
        has_backward_(FirstTrainedLayer(network) < (head_follows ? last + 1 : last)),
        wires_(WiresOfCell(network, first, last)),
        last_reader_(network.wires.size(), -1),
        read_(network.wires.size(), 0),
        stasher_(network.wires.size(), -1) {
    for (int i = first; i < last; ++i) {
      const NetworkLayer& layer = Layer(i);
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
      for (const WireId id : ids) bytes.push_back(sizes_.Bytes(id));
      return bytes;
    };
    memory.loaded = each(wires_.loaded);
    for (const WireId id : wires_.loaded) memory.rounded.push_back(sizes_.RoundedFrom(id));
    memory.received = each(wires_.received);
    memory.received_gradients = each(wires_.received_gradients);
    memory.sent = sizes_.Bytes(wires_.sent);
    memory.sent_gradients = sizes_.Bytes(wires_.sent_gradients);
    for (const WireId id : AllRead()) memory.read += sizes_.Bytes(id);
    for (const WireId id : wires_.sent) {
      const bool made_here = network_.wire(id).maker >= first_;
      if (made_here || !ReadHere(id)) memory.sent_beside_read += sizes_.Bytes(id);
      if (At(stasher_, id) < 0) memory.sent_beside_stash += sizes_.Bytes(id);
      if (made_here || At(stasher_, id) < 0) memory.sent_beside_recompute += sizes_.Bytes(id);
    }
    memory.stash = StashBytes();
    const int64_t inputs = sizes_.Bytes(wires_.loaded) + sizes_.Bytes(wires_.received);
    memory.forward = PeakOfForward(inputs, &LayerLists::forward_alone, true);
    memory.kept = PeakOfForward(inputs, &LayerLists::forward, false);
    memory.recompute =
        PeakOfForward(memory.read, &LayerLists::forward, true);  // what rides past has left
    memory.evaluation = PeakOfForward(inputs, &LayerLists::evaluation, false);
    MeasureBackwards(&memory);
    return memory;
  }

 private:
  template <typename T>
  static T& At(std::vector<T>& values, WireId id) {
    return values[static_cast<size_t>(id.value)];
  }
  const NetworkLayer& Layer(int i) const { return network_.layers[static_cast<size_t>(i)]; }
  bool ComesIn(WireId id) const { return network_.wire(id).maker < first_; }
  bool ReadHere(WireId id) { return At(read_, id); }
  std::vector<WireId> AllRead() {
    std::vector<WireId> all = wires_.loaded;
    for (const WireId id : wires_.received) {
      if (ReadHere(id)) all.push_back(id);
    }
    return all;
  }

  // Inputs, then outputs, of a layer: wire and value of its lists.
  template <typename Visit>
  static void ForEachWire(const NetworkLayer& layer, Visit visit) {
    for (size_t i = 0; i < layer.inputs.size(); ++i) visit(layer.inputs[i], layer.lists->inputs[i]);
    for (size_t i = 0; i < layer.outputs.size(); ++i) {
      visit(layer.outputs[i], layer.lists->outputs[i]);
    }
  }

  // What a layer keeps beside its inputs and outputs.
  int64_t InnerStash(const NetworkLayer& layer) const {
    int64_t bytes = 0;
    for (const ValueId id : layer.lists->stash) {
      if (Holds(layer.lists->inputs, id) || Holds(layer.lists->outputs, id)) continue;
      bytes += TypeBytes(layer.lists->value(id).type, samples_, dtype_);
    }
    return bytes;
  }

  void KeepStashes(Stashes* stashes) const {
    for (int i = first_; i < last_; ++i) {
      for (const WireId id : WiresAmong(Layer(i), Layer(i).lists->stash)) stashes->Keep(id);
      stashes->KeepInner(InnerStash(Layer(i)));
    }
  }
  int64_t StashBytes() const {
    Stashes stashes(sizes_, network_.wires.size());
    KeepStashes(&stashes);
    return stashes.bytes();
  }

  // Equal layers share their lists.
  int64_t Peak(const LayerLists& lists, const CallList& list, const std::vector<ValueId>& staying) {
    const auto [found, is_new] = peaks_.try_emplace({&list, staying}, 0);
    if (is_new) found->second = PeakOfList(lists, list, dtype_, staying, samples_);
    return found->second;
  }

  int64_t PeakOfForward(int64_t alive, CallList LayerLists::*of, bool hold_inputs) {
    const bool keep = of == &LayerLists::forward;
    int64_t peak = alive;
    // Without a backward only states are folded, behind each layer, from what it has kept.
    const bool stays = keep && has_backward_;
    for (int i = first_; i < last_; ++i) {
      const NetworkLayer& layer = Layer(i);
      const LayerLists& lists = *layer.lists;
      std::vector<ValueId> staying;
      for (size_t k = 0; k < layer.inputs.size(); ++k) {
        const WireId id = layer.inputs[k];
        const bool kept_before = stays && At(stasher_, id) >= 0 && At(stasher_, id) < i;
        if (At(last_reader_, id) > i || kept_before || (hold_inputs && ComesIn(id))) {
          staying.push_back(lists.inputs[k]);
        }
      }
      peak = std::max(peak, alive + Peak(lists, lists.*of, staying));
      for (const WireId id : layer.outputs) {
        if (!Holds(layer.inputs, id)) alive += sizes_.Bytes(id);
      }
      if (stays) alive += InnerStash(layer);
      for (size_t k = 0; k < layer.inputs.size(); ++k) {
        const bool kept = stays && Holds(lists.stash, lists.inputs[k]);
        if (kept || Holds(staying, lists.inputs[k])) continue;
        alive -= sizes_.Bytes(layer.inputs[k]);
      }
    }
    return std::max(peak, alive);
  }

  // The wires among these values of the layer, each once.
  static std::set<WireId> WiresAmong(const NetworkLayer& layer,
                                     const std::vector<ValueId>& values) {
    std::set<WireId> wires;
    ForEachWire(layer, [&](WireId id, ValueId value) {
      if (Holds(values, value)) wires.insert(id);
    });
    return wires;
  }

  // A way back through the cell: what is held at the time, and by whom.
  struct WayBack {
    WayBack(const WireSizes& sizes, size_t wires)
        : stashes(sizes, wires), gradients(sizes, wires) {}
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
  static std::vector<ValueId> HeldElsewhere(const NetworkLayer& layer, const WayBack& way,
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

  // Either both parts together, or the input part alone, and `kept` is what that leaves of each
  // layer.
  WayBack WalkBack(std::vector<ForWeights>* kept) {
    WayBack way(sizes_, network_.wires.size());
    for (const WireId id : wires_.received_gradients) {
      way.gradients.Hold(id, way.gradients.New(id));
    }
    KeepStashes(&way.stashes);
    way.Note(0);
    for (int i = last_ - 1; i >= first_; --i) {
      ForWeights* const of_layer =
          kept == nullptr ? nullptr : &(*kept)[static_cast<size_t>(i - first_)];
      WalkLayerBack(Layer(i), of_layer, &way);
    }
    return way;
  }

  void WalkLayerBack(const NetworkLayer& layer, ForWeights* kept, WayBack* way) {
    const LayerLists& lists = *layer.lists;
    std::map<ValueId, int> buffers;
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const ValueId gradient = lists.output_gradients[k];
      if (gradient.valid()) buffers[gradient] = way->gradients.Of(layer.outputs[k]);
    }
    way->Note(Peak(lists, kept == nullptr ? lists.backward : lists.input_gradient,
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
    if (kept != nullptr) KeepForWeights(layer, buffers, kept, way);
    for (const WireId id : WiresAmong(layer, lists.stash)) way->stashes.Drop(id);
    way->stashes.DropInner(InnerStash(layer));
    for (const WireId id : layer.outputs) way->gradients.Drop(id);
    for (const auto& [id, buffer] : shares) {
      const int64_t meanwhile = way->gradients.Add(id, buffer);
      way->peak = std::max(way->peak, way->stashes.bytes() + meanwhile);
    }
  }

  void KeepForWeights(const NetworkLayer& layer, const std::map<ValueId, int>& buffers,
                      ForWeights* kept, WayBack* way) {
    const LayerLists& lists = *layer.lists;
    kept->wires = WiresAmong(layer, lists.weight_stash);
    for (const ValueId value : lists.weight_stash) {
      if (Holds(lists.inputs, value) || Holds(lists.outputs, value)) continue;
      const auto gradient = buffers.find(value);
      if (gradient == buffers.end()) {
        kept->inner += TypeBytes(lists.value(value).type, samples_, dtype_);
      } else {
        kept->gradients.insert(*gradient);
      }
    }
    for (const WireId id : kept->wires) way->stashes.Keep(id);
    for (const auto& [value, buffer] : kept->gradients) way->gradients.Keep(buffer);
    way->stashes.KeepInner(kept->inner);
  }

  void MeasureBackwards(CellMemory* memory) {
    memory->backward = WalkBack(nullptr).peak;
    std::vector<ForWeights> kept(static_cast<size_t>(last_ - first_));
    WayBack way = WalkBack(&kept);
    memory->input_part = way.peak;
    const int64_t with_sent = way.bytes();
    for (const WireId id : wires_.sent_gradients) way.gradients.Drop(id);
    memory->for_weights = way.bytes();
    memory->sent_beside_weights = with_sent - memory->for_weights;
    way.peak = way.bytes();
    for (int i = last_ - 1; i >= first_; --i) {
      const NetworkLayer& layer = Layer(i);
      const ForWeights& of_layer = kept[static_cast<size_t>(i - first_)];
      way.Note(Peak(*layer.lists, layer.lists->weight_gradient,
                    HeldElsewhere(layer, way, of_layer.gradients)));
      for (const WireId id : of_layer.wires) way.stashes.Drop(id);
      for (const auto& [value, buffer] : of_layer.gradients) way.gradients.Release(buffer);
      way.stashes.DropInner(of_layer.inner);
    }
    memory->weight_part = way.peak;
  }

  const Network& network_;
  const WireSizes sizes_;
  const int64_t samples_;
  const DType dtype_;
  const int first_, last_;
  const bool has_backward_;
  const CellWires wires_;
  std::vector<int> last_reader_;  // by wire: the last layer here; `last_` if it goes on
  std::vector<char> read_;        // by wire: by a layer here, or by the loss
  std::vector<int> stasher_;      // by wire: the first layer here that keeps it; -1: none
  std::map<std::pair<const CallList*, std::vector<ValueId>>, int64_t> peaks_;
};

}  // namespace

CellMemory MemoryOfCell(const Network& network, int first, int last, int64_t samples) {
  return CellWalk(network, first, last, samples, false).Measure();
}

CellMemory MemoryInFrontOfHead(const Network& network, int first, int64_t samples) {
  const int head = static_cast<int>(network.layers.size()) - 1;
  return CellWalk(network, first, head, samples, true).Measure();
}

}  // namespace stagecoach
