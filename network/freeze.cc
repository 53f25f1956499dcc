#include "network/freeze.h"

#include <list>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/status.h"

namespace stagecoach {
namespace {

constexpr size_t kNamesShown = 3;

std::string SomeNames(const Network& network) {
  std::string names;
  size_t shown = 0;
  for (const NetworkLayer& layer : network.layers) {
    if (layer.parameters.empty() || shown++ == kNamesShown) continue;
    if (shown > kNamesShown) break;
    absl::StrAppend(&names, names.empty() ? "" : ", ", layer.parameters.front().name);
  }
  return names;
}

// Each is compared with each name.
constexpr size_t kMostPatterns = 256, kLongestPattern = 256;

absl::Status CheckPatterns(const std::vector<std::string>& patterns, const std::string& path) {
  if (patterns.size() > kMostPatterns) {
    return FieldError(path, absl::StrCat(patterns.size(), " patterns"),
                      absl::StrCat("at most ", kMostPatterns, ": let * stand for more"));
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (patterns[i].size() <= kLongestPattern) continue;
    return FieldError(absl::StrCat(path, "[", i, "]"),
                      absl::StrCat("a pattern of ", patterns[i].size(), " bytes"),
                      absl::StrCat("at most ", kLongestPattern));
  }
  return absl::OkStatus();
}

// Sets ParameterSpec::trained.
absl::Status MarkFrozen(const std::vector<std::string>& patterns, const std::string& path,
                        Network* network) {
  std::vector<bool> used(patterns.size(), false);
  bool any_trained = false;
  for (NetworkLayer& layer : network->layers) {
    for (ParameterSpec& parameter : layer.parameters) {
      for (size_t i = 0; i < patterns.size(); ++i) {
        if (!MatchesPattern(patterns[i], parameter.name)) continue;
        used[i] = true;
        parameter.trained = false;
      }
      any_trained = any_trained || parameter.trained;
    }
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (used[i]) continue;
    return FieldError(absl::StrCat(path, "[", i, "]"), absl::StrCat("\"", patterns[i], "\""),
                      absl::StrCat("must match a parameter's name, * standing for any characters: "
                                   "there are ",
                                   SomeNames(*network), " and others"));
  }
  if (any_trained) return absl::OkStatus();
  return FieldError(path, absl::StrCat(patterns.size(), " patterns"),
                    "must leave a parameter to train: together they match all");
}

// Lists of the layers as they are trained now; equal layers share theirs.
class Differentiated {
 public:
  // The layer's graph without gradients for what is constant.
  void Update(const Network& network, NetworkLayer* layer) {
    LayerGraph graph = *layer->graph;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      At(graph, graph.inputs[i]).constant = !network.wire(layer->inputs[i]).gradient;
    }
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      At(graph, graph.parameters[i]).constant = !layer->parameters[i].trained;
    }
    if (graph == *layer->graph) return;
    for (const auto& [known, lists] : known_) {
      if (*known != graph) continue;
      layer->graph = known;
      layer->lists = lists;
      return;
    }
    layer->graph = std::make_shared<const LayerGraph>(std::move(graph));
    layer->lists = std::make_shared<const LayerLists>(Differentiate(*layer->graph));
    known_.emplace_front(layer->graph, layer->lists);
  }

 private:
  static Value& At(LayerGraph& graph, ValueId id) {
    return graph.values[static_cast<size_t>(id.value)];
  }
  std::list<std::pair<std::shared_ptr<const LayerGraph>, std::shared_ptr<const LayerLists>>> known_;
};

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  // The usual way back: to the last star, which then takes one character more.
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

absl::StatusOr<Network> Freeze(Network network, const std::vector<std::string>& patterns,
                               const std::string& path) {
  if (patterns.empty()) return network;
  RETURN_IF_ERROR(CheckPatterns(patterns, path));
  RETURN_IF_ERROR(MarkFrozen(patterns, path, &network));
  Differentiated differentiated;
  for (NetworkLayer& layer : network.layers) {
    differentiated.Update(network, &layer);
    for (size_t i = 0; i < layer.outputs.size(); ++i) {
      Wire& wire = network.wires[static_cast<size_t>(layer.outputs[i].value)];
      if (wire.maker == layer.index) wire.gradient = layer.lists->output_gradients[i].valid();
    }
  }
  return network;
}

}  // namespace stagecoach
