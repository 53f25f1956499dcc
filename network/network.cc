#include "network/network.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/errors/check.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {

WireId Network::InputNamed(const std::string& name) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == name) return WireId(static_cast<int32_t>(i));
  }
  return WireId();
}

bool Objective::has(std::string_view flag) const {
  const AttributeValue* const value = attributes.Find(flag);
  return value != nullptr && *value == AttributeValue(true);
}

std::vector<std::string> Objective::measures() const {
  std::vector<std::string> names(sums.begin() + std::min<ptrdiff_t>(2, std::ssize(sums)),
                                 sums.end());  // behind loss and terms
  if (has("mean_iou")) names.emplace_back("mean_iou");
  return names;
}

std::vector<WireId> Objective::outputs() const {
  std::vector<WireId> ids;
  if (output.valid()) ids.push_back(output);
  if (auxiliary.valid()) ids.insert(auxiliary < output ? ids.begin() : ids.end(), auxiliary);
  return ids;
}

std::vector<ValueType> Objective::loaded() const {
  std::vector<ValueType> types = {target_type};
  if (weighted()) types.push_back(LossWeightsType(target_type));
  return types;
}

int64_t Network::targets() const { return wire(objective.targets).type.shape.elements(); }
int64_t Network::classes() const { return wire(objective.output).type.shape.back(); }

int64_t Network::WireBytes(WireId id) const {
  return TypeBytes(wire(id).type, 1, ComputeDType(precision));
}

int FirstTrainedLayer(const Network& network) {
  for (const NetworkLayer& layer : network.layers) {
    for (const ValueId gradient : layer.lists->output_gradients) {
      if (gradient.valid()) return layer.index;
    }
  }
  return static_cast<int>(network.layers.size());
}

int64_t WireBytes(const Network& network, const std::vector<WireId>& wires) {
  int64_t sum = 0;
  for (const WireId id : wires) sum += network.WireBytes(id);
  return sum;
}

CellWires WiresOfCell(const Network& network, int first, int last) {
  const int layers = static_cast<int>(network.layers.size());
  // None at all where the loss runs the one layer of a cell (network/passes/head_chunks.h).
  CHECK(0 <= first && first <= last && last <= layers)
      << "layers [" << first << ", " << last << ") of " << layers;
  std::vector<bool> here(network.wires.size(), false), behind(network.wires.size(), false);
  for (int i = first; i < layers; ++i) {
    for (const WireId id : network.layers[static_cast<size_t>(i)].inputs) {
      (i < last ? here : behind)[static_cast<size_t>(id.value)] = true;
    }
  }
  for (const WireId id : network.objective.outputs()) behind[static_cast<size_t>(id.value)] = true;

  CellWires wires;
  for (size_t i = 0; i < network.wires.size(); ++i) {
    const WireId id(static_cast<int32_t>(i));
    const Wire& wire = network.wires[i];
    if (network.IsInput(id)) {
      if (here[i]) wires.loaded.push_back(id);
      continue;
    }
    if (wire.maker < first && (here[i] || behind[i])) {
      wires.received.push_back(id);
      if (wire.gradient) wires.sent_gradients.push_back(id);
    }
    if (wire.maker < last && behind[i]) {
      wires.sent.push_back(id);
      if (wire.gradient) wires.received_gradients.push_back(id);
    }
  }
  return wires;
}

std::vector<int> LastReaders(const Network& network) {
  std::vector<int> readers(network.wires.size(), -1);
  for (const NetworkLayer& layer : network.layers) {
    for (const WireId id : layer.inputs) readers[static_cast<size_t>(id.value)] = layer.index;
  }
  const auto behind_all = static_cast<int>(network.layers.size());
  for (const WireId id : network.objective.outputs()) {
    readers[static_cast<size_t>(id.value)] = behind_all;
  }
  return readers;
}

std::vector<int64_t> CutBytes(const Network& network) {
  const std::vector<int> readers = LastReaders(network);
  std::vector<int64_t> change(network.layers.size() + 1, 0);
  for (size_t i = network.inputs.size(); i < network.wires.size(); ++i) {
    const int64_t bytes = network.WireBytes(WireId(static_cast<int32_t>(i)));
    change[static_cast<size_t>(network.wires[i].maker)] += bytes;
    change[static_cast<size_t>(readers[i])] -= bytes;
  }
  std::vector<int64_t> cuts;
  int64_t alive = 0;
  for (size_t i = 0; i < network.layers.size(); ++i) cuts.push_back(alive += change[i]);
  return cuts;
}

}  // namespace stagecoach
