// Network: the network that a job trains, as a value. It has the sequence of layers that a
// partition cuts (GPipe, section 2.1), and the values that go from layer to layer. It also has the
// inputs that the data source gives, and the values that the loss reads.
// Ownership: plain values; equal layers share their lists.
// Units and shapes: types are of one sample. Wires count from the inputs on, then in the order of
//            the layers that make them.
// Errors:    none; the builder answers for them (network/network_builder.h).
#ifndef STAGECOACH_NETWORK_NETWORK_H_
#define STAGECOACH_NETWORK_NETWORK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/numbers/precision.h"
#include "network/lists/lists.h"
#include "network/parameter.h"
#include "network/state.h"

namespace stagecoach {

using WireId = Id<struct WireTag>;  // a place in Network::wires

// A value that layers hand to each other.
struct Wire {
  ValueType type;
  int maker = -1;         // the layer that makes it; -1: the data source
  bool gradient = false;  // one comes back
  friend bool operator==(const Wire&, const Wire&) = default;
};

// An input from the data source. It is the wire of the same place.
struct NetworkInput {
  std::string name;     // "tokens", "targets"
  int64_t classes = 0;  // ids are below it; 0: no ids
  friend bool operator==(const NetworkInput&, const NetworkInput&) = default;
};

// A layer: what it is, what goes in and out, what it owns.
struct NetworkLayer {
  int index = 0;
  std::string label;  // "embedding", "residual(layer_norm, attention)", ...
  // Its function in one word, as checkpoints know it: "residual(layer_norm attention:6)". It is
  // "identity" for a layer that is no part of the function, as dropout.
  std::string function;
  std::vector<WireId> inputs, outputs;    // in the order of the lists' own
  std::vector<ParameterSpec> parameters;  // in the order of ParameterSpec::index
  std::vector<StateSpec> states;
  // The lists that a stage runs. Their parameters and states are those above, in this order.
  std::shared_ptr<const LayerLists> lists;
  std::shared_ptr<const LayerGraph> graph;  // that the lists were derived from
};

// Objective: one call of a loss for each micro-batch (operations/losses/loss_types.h). It compares
// the output of the last layer with the targets of the data source. Over a mini-batch it is the sum
// of the losses divided by the sum of the terms. Measures are divided so too.
struct Objective {
  std::string operation;          // "cross_entropy"
  Attributes attributes;          // of an evaluation; training takes them with `gradient`
  WireId output, targets;         // of a layer; of the data source
  ValueType target_type;          // what targets are loaded as: numbers are not rounded
  std::vector<std::string> sums;  // the operation's: "loss", "terms", measures
  // A target of this id is no term of the loss. So the terms of a mini-batch have to be counted.
  // nullopt: every target is a term.
  std::optional<int64_t> ignored;
  // Another output of the same type, of a layer in front of the last. Training compares it with the
  // same targets and adds its loss times the weight. An evaluation does without it. Invalid: none.
  WireId auxiliary;
  double auxiliary_weight = 0;
  // Weights of targets: the data source's number for their sample times the one of their class.
  // Then "terms" are sums of weights, and measures are weighted too.
  WireId weights;                    // of the data source; invalid: each sample weighs 1
  std::vector<float> class_weights;  // by class; empty: each weighs 1
  bool weighted() const { return weights.valid() || !class_weights.empty(); }
  // Whether the loss has this flag set, as "mean_iou" for a measure.
  bool has(std::string_view flag) const;
  // Measures beside the loss, over all classes: "accuracy".
  std::vector<std::string> measures() const;
  // Wires of layers that it reads; ascending, as all wires at a cut. None: there is no objective, as
  // in a network that is a part of another.
  std::vector<WireId> outputs() const;
  size_t output_place() const { return auxiliary.valid() && auxiliary < output ? 1 : 0; }
  // Inputs that the last stage asks the data source for.
  std::vector<WireId> inputs() const {
    return weights.valid() ? std::vector{targets, weights} : std::vector{targets};
  }
  // Values on its device for the loss: targets, and their weights if they have some.
  std::vector<ValueType> loaded() const;
  friend bool operator==(const Objective&, const Objective&) = default;
};

struct Network {
  std::vector<NetworkInput> inputs;
  std::vector<Wire> wires;
  std::vector<NetworkLayer> layers;
  Objective objective;
  Precision precision = Precision::kFloat32;

  const Wire& wire(WireId id) const { return wires[static_cast<size_t>(id.value)]; }
  bool IsInput(WireId id) const { return id.value < static_cast<int32_t>(inputs.size()); }
  const NetworkInput& input(WireId id) const { return inputs[static_cast<size_t>(id.value)]; }
  // The input of that name; invalid if there is none.
  WireId InputNamed(const std::string& name) const;
  // Number of targets in one sample, if none is ignored: tokens of a text, one label of an image.
  // The loss is a mean over them.
  int64_t targets() const;
  // classes that the loss tells apart: last extent of the objective's input
  int64_t classes() const;
  int64_t WireBytes(WireId id) const;  // of one sample
};

// Wires that a cell, layers [first, last), exchanges with its surroundings; ascending.
struct CellWires {
  std::vector<WireId> loaded;    // from the data source, for its layers
  std::vector<WireId> received;  // from the cell before: made before, used here or later
  std::vector<WireId>
      sent;  // to the cell behind; of the last cell what the objective reads of layers
  std::vector<WireId> received_gradients;  // those of `sent` that have one
  std::vector<WireId> sent_gradients;      // those of `received` that have one
};
CellWires WiresOfCell(const Network& network, int first, int last);
// The first layer that a gradient reaches: it trains something, and none in front of it does. The
// cuts behind it all have a gradient that comes back, those in front of it none. The number of layers if
// the network trains nothing (network/passes/freeze.h, FreezeAll).
int FirstTrainedLayer(const Network& network);
int64_t WireBytes(const Network& network, const std::vector<WireId>& wires);  // of one sample
// Bytes that cross a cut behind each layer; behind the last one those that the objective reads. Of
// one sample.
std::vector<int64_t> CutBytes(const Network& network);
// The last layer that reads each wire; the number of layers for the objective's, -1 where nothing
// reads it.
std::vector<int> LastReaders(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NETWORK_H_
