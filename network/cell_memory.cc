#include "network/cell_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "network/cost.h"

namespace stagecoach {
namespace {

template <typename Id>
bool Holds(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// What a wire holds of each sample or of all: a size is asked for in one place.
class WireSizes {
 public:
  WireSizes(const Network& network, int64_t samples) : network_(network), samples_(samples) {}
  int64_t Bytes(WireId id) const {
    return TypeBytes(network_.wire(id).type, samples_, ComputeDType(network_.precision));
  }
  int64_t Bytes(const std::vector<WireId>& ids) const {
    int64_t sum = 0;
    for (const WireId id : ids) sum += Bytes(id);
    return sum;
  }
  // Of numbers, which the data source gives as float32, where the network computes with others.
  int64_t RoundedFrom(WireId id) const {
    const ValueType& type = network_.wire(id).type;
    const DType dtype = ComputeDType(network_.precision);
    if (type.element != Element::kActivation || dtype == DType::kF32) return 0;
    return TypeBytes(type, samples_, DType::kF32);
  }

 private:
  const Network& network_;
  const int64_t samples_;
};

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
  int Of(WireId id) const { return buffer_of_[static_cast<size_t>(id.value)]; }
  bool IsShared(WireId id) const { return buffers_[static_cast<size_t>(Of(id))].holders > 1; }
  int64_t bytes() const { return bytes_; }

  // Another share, which is held already; the peak meanwhile.
  int64_t Add(WireId id, int share) {
    int64_t peak = bytes_;
    if (At(id) < 0) {
      At(id) = share;
      return peak;
    }
    if (IsShared(id)) {  // the sum has a place of its own
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
  void Release(int buffer) {
    Buffer& held = buffers_[static_cast<size_t>(buffer)];
    if (--held.holders == 0) bytes_ -= held.bytes;
  }

  const WireSizes& sizes_;
  std::vector<int> buffer_of_;  // by wire; -1: none
  std::vector<Buffer> buffers_;
  int64_t bytes_ = 0;
};

class CellWalk {
 public:
  CellWalk(const Network& network, int first, int last, int64_t samples)
      : network_(network),
        sizes_(network, samples),
        samples_(samples),
        dtype_(ComputeDType(network.precision)),
        first_(first),
        last_(last),
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
    const bool loss_follows = last == static_cast<int>(network.layers.size());
    for (const WireId id : wires_.sent) {
      At(last_reader_, id) = last;
      if (loss_follows) At(read_, id) = 1;
    }
    FindStash();
  }

  CellMemory Measure() {
    CellMemory memory;
    const auto each = [this](const std::vector<WireId>& ids) {
      std::vector<int64_t> bytes;
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
    }
    memory.stash = StashUpTo(last_ - 1);
    const int64_t inputs = sizes_.Bytes(wires_.loaded) + sizes_.Bytes(wires_.received);
    memory.forward = PeakOfForward(inputs, false, true);
    memory.kept = PeakOfForward(inputs, true, false);
    memory.recompute = PeakOfForward(memory.read, true, true);  // what rides past has left
    memory.backward = PeakOfBackward();
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

  void FindStash() {
    stash_of_.assign(static_cast<size_t>(last_ - first_), 0);
    for (int i = first_; i < last_; ++i) StashOf(i) = InnerStash(Layer(i));
    for (size_t i = 0; i < stasher_.size(); ++i) {
      if (stasher_[i] < 0) continue;
      StashOf(stasher_[i]) += sizes_.Bytes(WireId(static_cast<int32_t>(i)));
    }
    for (int i = first_ + 1; i < last_; ++i) StashOf(i) += StashOf(i - 1);
  }
  int64_t& StashOf(int layer) { return stash_of_[static_cast<size_t>(layer - first_)]; }
  int64_t StashUpTo(int layer) { return layer < first_ ? 0 : StashOf(layer); }

  // Equal layers share their lists.
  int64_t Peak(const LayerLists& lists, const CallList& list, const std::vector<ValueId>& staying) {
    const auto [found, is_new] = peaks_.try_emplace({&list, staying}, 0);
    if (is_new) found->second = PeakOfList(lists, list, dtype_, staying, samples_);
    return found->second;
  }

  int64_t PeakOfForward(int64_t alive, bool keep, bool hold_inputs) {
    int64_t peak = alive;
    // Without a backward only states are folded, behind each layer, from what it has kept.
    const bool stays = keep && FirstTrainedLayer(network_) < last_;
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
      const CallList& list = keep ? lists.forward : lists.forward_alone;
      peak = std::max(peak, alive + Peak(lists, list, staying));
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

  int64_t PeakOfBackward() {
    Gradients gradients(sizes_, network_.wires.size());
    for (const WireId id : wires_.received_gradients) gradients.Hold(id, gradients.New(id));
    int64_t peak = gradients.bytes() + StashUpTo(last_ - 1);
    for (int i = last_ - 1; i >= first_; --i) {
      const NetworkLayer& layer = Layer(i);
      const LayerLists& lists = *layer.lists;
      std::vector<ValueId> staying;  // what an earlier layer keeps too
      ForEachWire(layer, [&](WireId id, ValueId value) {
        if (At(stasher_, id) >= 0 && At(stasher_, id) < i) staying.push_back(value);
      });
      std::map<ValueId, int> buffers;
      for (size_t k = 0; k < layer.outputs.size(); ++k) {
        const ValueId gradient = lists.output_gradients[k];
        if (!gradient.valid()) continue;
        buffers[gradient] = gradients.Of(layer.outputs[k]);
        if (gradients.IsShared(layer.outputs[k])) staying.push_back(gradient);
      }
      peak =
          std::max(peak, StashUpTo(i) + gradients.bytes() + Peak(lists, lists.backward, staying));
      std::vector<std::pair<WireId, int>> shares;
      for (size_t k = 0; k < layer.inputs.size(); ++k) {
        const ValueId gradient = lists.input_gradients[k];
        if (!gradient.valid()) continue;
        const auto [found, is_new] = buffers.try_emplace(gradient, -1);
        if (is_new) found->second = gradients.New(layer.inputs[k]);
        gradients.Keep(found->second);
        shares.emplace_back(layer.inputs[k], found->second);
      }
      for (const WireId id : layer.outputs) gradients.Drop(id);
      for (const auto& [id, buffer] : shares) {
        peak = std::max(peak, StashUpTo(i - 1) + gradients.Add(id, buffer));
      }
    }
    return peak;
  }

  const Network& network_;
  const WireSizes sizes_;
  const int64_t samples_;
  const DType dtype_;
  const int first_, last_;
  const CellWires wires_;
  std::vector<int> last_reader_;   // by wire: the last layer here; `last_` if it goes on
  std::vector<char> read_;         // by wire: by a layer here, or by the loss
  std::vector<int> stasher_;       // by wire: the first layer here that keeps it; -1: none
  std::vector<int64_t> stash_of_;  // of all layers here up to each
  std::map<std::pair<const CallList*, std::vector<ValueId>>, int64_t> peaks_;
};

}  // namespace

CellMemory MemoryOfCell(const Network& network, int first, int last, int64_t samples) {
  return CellWalk(network, first, last, samples).Measure();
}

}  // namespace stagecoach
