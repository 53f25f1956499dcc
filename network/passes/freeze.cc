#include "network/passes/freeze.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/files/name_patterns.h"
#include "network/shared_lists.h"

namespace stagecoach {
namespace {

constexpr size_t kNamesShown = 3;

std::string SomeNames(const Network& network) {
  std::string names;
  size_t shown = 0;
  for (const NetworkLayer& layer : network.layers) {
    if (layer.parameters.empty() || layer.parameters.front().tied()) continue;
    if (shown++ == kNamesShown) continue;
    if (shown > kNamesShown) break;
    absl::StrAppend(&names, names.empty() ? "" : ", ", layer.parameters.front().name);
  }
  return names;
}

// Sets ParameterSpec::trained.
absl::Status MarkFrozen(const std::vector<std::string>& patterns, const std::string& path,
                        Network* network) {
  std::vector<bool> used(patterns.size(), false);
  bool any_trained = false;
  std::set<std::string> frozen;
  std::vector<std::string> owners(patterns.size());  // of tied parameters that are matched
  for (NetworkLayer& layer : network->layers) {
    for (ParameterSpec& parameter : layer.parameters) {
      if (parameter.tied()) {  // goes with its owner, which stands in front of it
        parameter.trained = !frozen.contains(parameter.tied_to);
        for (size_t i = 0; i < patterns.size(); ++i) {
          if (MatchesPattern(patterns[i], parameter.name)) owners[i] = parameter.tied_to;
        }
        continue;
      }
      for (size_t i = 0; i < patterns.size(); ++i) {
        if (!MatchesPattern(patterns[i], parameter.name)) continue;
        used[i] = true;
        parameter.trained = false;
      }
      any_trained = any_trained || parameter.trained;
      if (!parameter.trained) frozen.insert(parameter.name);
    }
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (used[i]) continue;
    if (!owners[i].empty()) {
      return FieldError(absl::StrCat(path, "[", i, "]"), absl::StrCat("\"", patterns[i], "\""),
                        absl::StrCat("what it matches is tied to ", owners[i], ": freeze that"));
    }
    return FieldError(absl::StrCat(path, "[", i, "]"), absl::StrCat("\"", patterns[i], "\""),
                      absl::StrCat("must match a parameter's name, * standing for any characters: "
                                   "there are ",
                                   SomeNames(*network), " and others"));
  }
  if (any_trained) return absl::OkStatus();
  return FieldError(path, absl::StrCat(patterns.size(), " patterns"),
                    "must leave a parameter to train: together they match all");
}

// The layer's graph without gradients for what is constant.
LayerGraph AsTrained(const Network& network, const NetworkLayer& layer) {
  LayerGraph graph = *layer.graph;
  const auto at = [&graph](ValueId id) -> Value& {
    return graph.values[static_cast<size_t>(id.value)];
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    at(graph.inputs[i]).constant = !network.wire(layer.inputs[i]).gradient;
  }
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    at(graph.parameters[i]).constant = !layer.parameters[i].trained;
  }
  return graph;
}

}  // namespace

absl::StatusOr<Network> WithGradientsOfTrained(Network network) {
  SharedLists lists;
  for (NetworkLayer& layer : network.layers) {
    LayerGraph graph = AsTrained(network, layer);
    if (graph != *layer.graph) RETURN_IF_ERROR(lists.Set(std::move(graph), &layer));
    for (size_t i = 0; i < layer.outputs.size(); ++i) {
      Wire& wire = network.wires[static_cast<size_t>(layer.outputs[i].value)];
      if (wire.maker == layer.index) wire.gradient = layer.lists->output_gradients[i].valid();
    }
  }
  return network;
}

absl::StatusOr<Network> FreezeAll(Network network) {
  for (NetworkLayer& layer : network.layers) {
    for (ParameterSpec& parameter : layer.parameters) parameter.trained = false;
  }
  return WithGradientsOfTrained(std::move(network));
}

absl::StatusOr<Network> AsBase(Network network) {
  for (NetworkLayer& layer : network.layers) {
    for (ParameterSpec& parameter : layer.parameters) parameter.part = ParameterSpec::Part::kBase;
  }
  return FreezeAll(std::move(network));
}

absl::StatusOr<Network> Freeze(Network network, const std::vector<std::string>& patterns,
                               const std::string& path) {
  if (patterns.empty()) return network;
  RETURN_IF_ERROR(CheckPatterns(patterns, path));
  RETURN_IF_ERROR(MarkFrozen(patterns, path, &network));
  return WithGradientsOfTrained(std::move(network));
}

}  // namespace stagecoach
