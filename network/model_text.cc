#include "network/model_text.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

// Of one value; 0 for ids.
int64_t WidthOf(const Network& model, WireId wire) {
  const ValueType& type = model.wire(wire).type;
  return type.element == Element::kIds || type.shape.rank() == 0 ? 0 : type.shape.back();
}

// As if there were no weights of samples: they are how a network is trained.
int32_t NumberOf(const Network& model, WireId wire) {
  const WireId weights = model.objective.weights;
  return wire.value - (weights.valid() && weights < wire ? 1 : 0);
}

// "16 8": what goes in and comes out of a layer in a chain. Of any other the types of all values,
// and which wires it reads: the same layers with other skips are another network.
std::string WiresText(const Network& model, const NetworkLayer& layer) {
  const bool first = layer.index == 0;
  const std::vector<WireId> before =
      first ? std::vector<WireId>{WireId(0)} : model.layers[layer.index - 1].outputs;
  if (layer.inputs == before && before.size() == 1 && layer.outputs.size() == 1) {
    return absl::StrCat(WidthOf(model, layer.inputs[0]), " ", WidthOf(model, layer.outputs[0]));
  }
  std::string text = "reads";
  for (const WireId id : layer.inputs) {
    absl::StrAppend(&text, " ", NumberOf(model, id), " ", FormatType(model.wire(id).type));
  }
  text += " gives";
  for (const WireId id : layer.outputs) {
    absl::StrAppend(&text, " ", FormatType(model.wire(id).type));
  }
  return text;
}

}  // namespace

std::string CanonicalModelText(const Network& model) {
  std::string text =
      absl::StrCat("model 1\ncontext ", model.targets(), "\nvocabulary ", model.classes(), "\n");
  // The same weights on images of other extents are another function.
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ValueType& type = model.wires[i].type;
    if (type.element == Element::kIds ||
        WireId(static_cast<int32_t>(i)) == model.objective.weights) {
      continue;
    }
    absl::StrAppend(&text, "input ", model.inputs[i].name, " ", FormatType(type), "\n");
  }
  for (const NetworkLayer& layer : model.layers) {
    absl::StrAppend(&text, "layer ", layer.index, " ", layer.function, " ", WiresText(model, layer),
                    "\n");
    for (const ParameterSpec& parameter : layer.parameters) {
      absl::StrAppend(&text, "  ", parameter.name, " ", parameter.shape.ToString(),
                      parameter.tied() ? absl::StrCat(" is ", parameter.tied_to) : "", "\n");
    }
    for (const StateSpec& state : layer.states) {
      absl::StrAppend(&text, "  state ", state.name, " ", state.shape.ToString(), "\n");
    }
  }
  return text;
}

}  // namespace stagecoach
