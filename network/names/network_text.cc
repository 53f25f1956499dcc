#include "network/names/network_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "network/layer_kind.h"
#include "network/passes/lora.h"

namespace stagecoach {
namespace {

// Of one value; 0 for ids.
int64_t WidthOf(const Network& network, WireId wire) {
  const ValueType& type = network.wire(wire).type;
  return type.element == Element::kIds || type.shape.rank() == 0 ? 0 : type.shape.back();
}

// As if there were no weights of samples: they are how a network is trained.
int32_t NumberOf(const Network& network, WireId wire) {
  const WireId weights = network.objective.weights;
  return wire.value - (weights.valid() && weights < wire ? 1 : 0);
}

// "16 8": what goes in and comes out of a layer in a chain. Of any other the types of all values,
// and which wires it reads: the same layers with other skips are another network.
std::string WiresText(const Network& network, const NetworkLayer& layer) {
  const bool first = layer.index == 0;
  const std::vector<WireId> before =
      first ? std::vector<WireId>{WireId(0)} : network.layers[layer.index - 1].outputs;
  if (layer.inputs == before && before.size() == 1 && layer.outputs.size() == 1) {
    return absl::StrCat(WidthOf(network, layer.inputs[0]), " ", WidthOf(network, layer.outputs[0]));
  }
  std::string text = "reads";
  for (const WireId id : layer.inputs) {
    absl::StrAppend(&text, " ", NumberOf(network, id), " ", FormatType(network.wire(id).type));
  }
  text += " gives";
  for (const WireId id : layer.outputs) {
    absl::StrAppend(&text, " ", FormatType(network.wire(id).type));
  }
  return text;
}

}  // namespace

std::string CanonicalNetworkText(const Network& network) {
  std::string text = absl::StrCat("model 1\ncontext ", network.targets(), "\nvocabulary ",
                                  network.classes(), "\n");
  // The same weights on images of other extents are another function.
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const ValueType& type = network.wires[i].type;
    if (type.element == Element::kIds ||
        WireId(static_cast<int32_t>(i)) == network.objective.weights) {
      continue;
    }
    absl::StrAppend(&text, "input ", network.inputs[i].name, " ", FormatType(type), "\n");
  }
  const std::vector<Adapter> adapters = AdaptersOf(network);  // by layer
  auto adapter = adapters.begin();
  for (const NetworkLayer& layer : network.layers) {
    absl::StrAppend(&text, "layer ", layer.index, " ", layer.function, " ",
                    WiresText(network, layer), "\n");
    for (const ParameterSpec& parameter : layer.parameters) {
      absl::StrAppend(&text, "  ", parameter.name, " ", parameter.shape.ToString(),
                      parameter.tied() ? absl::StrCat(" is ", parameter.tied_to) : "", "\n");
    }
    for (; adapter != adapters.end() && adapter->layer == layer.index; ++adapter) {
      absl::StrAppend(&text, "  ", adapter->module, " times ", ExactText(adapter->scale), "\n");
    }
    for (const StateSpec& state : layer.states) {
      absl::StrAppend(&text, "  state ", state.name, " ", state.shape.ToString(), "\n");
    }
  }
  return text;
}

}  // namespace stagecoach
