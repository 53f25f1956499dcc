// CellLayers: the layers of a cell as their memory is counted: sizes of wires, peaks of lists, and
// stashes. Memory that several layers hold is there once.
// Ownership: the network outlives them, and the cell its stashes.
// Threads:   one owner.
// Units:     bytes of a micro-batch of so many samples.
#ifndef STAGECOACH_NETWORK_MEMORY_CELL_LAYERS_H_
#define STAGECOACH_NETWORK_MEMORY_CELL_LAYERS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "network/memory/cell_memory.h"
#include "network/network.h"

namespace stagecoach {

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

// What stashes hold: wires, which several layers may keep, and what each layer keeps beside them.
class Stashes {
 public:
  Stashes(const WireSizes& sizes, size_t wires) : sizes_(sizes), keepers_(wires, 0) {}

  void Keep(WireId id) {
    if (At(id)++ == 0) bytes_ += sizes_.Bytes(id);
  }
  void Drop(WireId id) {
    if (--At(id) == 0) bytes_ -= sizes_.Bytes(id);
  }
  void KeepInner(int64_t bytes) { bytes_ += bytes; }
  void DropInner(int64_t bytes) { bytes_ -= bytes; }
  bool IsShared(WireId id) const { return keepers_[static_cast<size_t>(id.value)] > 1; }
  int64_t bytes() const { return bytes_; }

 private:
  int& At(WireId id) { return keepers_[static_cast<size_t>(id.value)]; }

  const WireSizes& sizes_;
  std::vector<int> keepers_;  // by wire: layers
  int64_t bytes_ = 0;
};

// The layers [first, last) of a network at work.
class CellLayers {
 public:
  CellLayers(const Network& network, int first, int last, int64_t samples)
      : network(network),
        sizes(network, samples),
        samples(samples),
        dtype(ComputeDType(network.precision)),
        first(first),
        last(last) {}

  const NetworkLayer& Layer(int i) const { return network.layers[static_cast<size_t>(i)]; }
  // Of a list of the layer, in which these values stay to its end.
  int64_t Peak(const NetworkLayer& layer, CallList LayerLists::*of,
               const std::vector<ValueId>& staying);
  int64_t Bytes(const NetworkLayer& layer, ValueId value) const {
    return TypeBytes(layer.lists->value(value).type, samples, dtype);
  }
  // What a layer keeps beside its inputs and outputs.
  int64_t InnerStash(const NetworkLayer& layer) const;
  Stashes KeptStashes() const;  // of all layers, before any is dropped

  const Network& network;
  const WireSizes sizes;
  const int64_t samples;
  const DType dtype;
  const int first, last;

 private:
  std::map<std::pair<const CallList*, std::vector<ValueId>>, int64_t> peaks_;
};

template <typename Id>
bool Holds(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}
// Inputs, then outputs, of a layer: wire and value of its lists.
template <typename Visit>
void ForEachWire(const NetworkLayer& layer, Visit visit) {
  for (size_t i = 0; i < layer.inputs.size(); ++i) visit(layer.inputs[i], layer.lists->inputs[i]);
  for (size_t i = 0; i < layer.outputs.size(); ++i) {
    visit(layer.outputs[i], layer.lists->outputs[i]);
  }
}
// The wires among these values of the layer, each once.
std::set<WireId> WiresAmong(const NetworkLayer& layer, const std::vector<ValueId>& values);

// Sets the peaks of the backward and of its two parts, and what is kept between those.
// wires: of the cell.
void MeasureBackwards(CellLayers& cell, const CellWires& wires, CellMemory* memory);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_MEMORY_CELL_LAYERS_H_
