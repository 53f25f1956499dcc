#include "network/passes/lora.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/files/name_patterns.h"
#include "network/limits.h"
#include "network/passes/freeze.h"
#include "network/passes/lora_modules.h"
#include "network/shared_lists.h"
#include "operations/concatenate.h"
#include "operations/linear.h"
#include "operations/pointwise/dropout.h"
#include "operations/pointwise/scale.h"

namespace stagecoach {
namespace {

using Part = ParameterSpec::Part;

// The targets of a job, and which of them have matched something.
class Targets {
 public:
  explicit Targets(const LoraSpec& spec)
      : patterns_(spec.targets.empty() ? std::vector<std::string>{"query", "value"} : spec.targets),
        used_(patterns_.size(), false) {}

  // A pattern matches a module's name or an end of it that begins behind a "." or "/".
  bool Match(const std::string& module) {
    bool any = false;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      const std::string& pattern = patterns_[i];
      if (!MatchesPattern(pattern, module) && !MatchesPattern("*." + pattern, module) &&
          !MatchesPattern("*/" + pattern, module)) {
        continue;
      }
      any = used_[i] = true;
    }
    return any;
  }
  // The first one that has matched nothing.
  std::optional<size_t> unused() const {
    const auto found = std::find(used_.begin(), used_.end(), false);
    if (found == used_.end()) return std::nullopt;
    return static_cast<size_t>(found - used_.begin());
  }
  const std::string& pattern(size_t i) const { return patterns_[i]; }

 private:
  const std::vector<std::string> patterns_;
  std::vector<bool> used_;
};

// Parameters that several layers share.
std::set<std::string> SharedNames(const Network& network) {
  std::set<std::string> names;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.tied()) names.insert({parameter.name, parameter.tied_to});
    }
  }
  return names;
}

// The modules of the layer that may have an adapter: not the head, and no shared weight.
std::vector<LoraModule> Candidates(const Network& network, const NetworkLayer& layer,
                                   const std::set<std::string>& shared) {
  std::vector<LoraModule> modules = LoraModulesOf(layer);
  std::erase_if(modules, [&](const LoraModule& module) {
    const ValueId y = layer.graph->calls[module.call].outputs[0];
    const bool head = layer.index + 1 == static_cast<int>(network.layers.size()) &&
                      std::find(layer.graph->outputs.begin(), layer.graph->outputs.end(), y) !=
                          layer.graph->outputs.end();
    return head || shared.contains(layer.parameters[module.parameter].name);
  });
  return modules;
}

// Those that a job names. A whole weight stands for its projections.
std::vector<LoraModule> Chosen(const std::vector<LoraModule>& candidates, Targets* targets) {
  std::vector<LoraModule> chosen;
  std::set<size_t> whole;  // calls
  for (const LoraModule& module : candidates) {
    if (!targets->Match(module.name) || whole.contains(module.call)) continue;
    if (module.whole) whole.insert(module.call);
    chosen.push_back(module);
  }
  return chosen;
}

// Rewrites the graph of one layer.
class LayerWithAdapters {
 public:
  LayerWithAdapters(const NetworkLayer& layer, const LoraSpec& spec,
                    const std::vector<LoraModule>& modules)
      : layer_(layer), graph_(*layer.graph), spec_(spec), parameters_(layer.parameters) {
    for (const LoraModule& module : modules) at_call_[module.call].push_back({module, {}, {}});
    ids_.resize(graph_.values.size());
  }

  absl::StatusOr<LayerGraph> Write() {
    WriteLeaves();
    WriteParameters();
    for (size_t i = 0; i < graph_.calls.size(); ++i) WriteCall(i);
    return writer_.Finish(New(graph_.outputs));
  }
  std::vector<ParameterSpec> TakeParameters() { return std::move(parameters_); }

 private:
  struct Site {
    LoraModule module;
    ValueId a, b;
  };

  ValueId New(ValueId id) const { return ids_[static_cast<size_t>(id.value)]; }
  std::vector<ValueId> New(const std::vector<ValueId>& ids) const {
    std::vector<ValueId> values;
    for (const ValueId id : ids) values.push_back(New(id));
    return values;
  }

  // Inputs, parameters and states in their own order.
  void WriteLeaves() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      switch (value.origin) {
        case Origin::kInput:
          ids_[i] = writer_.Input(value.type, !value.constant);
          break;
        case Origin::kParameter:
          ids_[i] = writer_.Parameter(value.type.element, value.type.shape, /*trained=*/false);
          break;
        case Origin::kState:
          ids_[i] = writer_.State(value.type.shape, value.type.element);
          break;
        case Origin::kCall:
        case Origin::kAccumulator:
          break;
      }
    }
  }

  ValueId AddParameter(const std::string& name, Shape shape, double stddev) {
    ParameterSpec parameter;
    parameter.name = name;
    parameter.shape = shape;
    parameter.init = stddev > 0 ? ParameterSpec::Init::kNormal : ParameterSpec::Init::kZeros;
    parameter.init_stddev = stddev;
    parameter.index = static_cast<int>(parameters_.size());
    parameter.decay = true;
    parameter.part = Part::kAdapter;
    parameters_.push_back(std::move(parameter));
    return writer_.Parameter(Element::kActivation, std::move(shape));
  }

  // Behind the layer's own, which keep their random streams.
  void WriteParameters() {
    for (ParameterSpec& parameter : parameters_) {
      parameter.trained = false;
      parameter.part = Part::kBase;
    }
    for (auto& [call, sites] : at_call_) {
      for (Site& site : sites) {
        const int64_t inputs = layer_.parameters[site.module.parameter].shape[1];
        // The deviation of PyTorch's uniform numbers for a linear layer, which PEFT takes.
        const double stddev = 1.0 / std::sqrt(3.0 * static_cast<double>(inputs));
        site.a = AddParameter(LoraA(site.module.name), {spec_.rank, inputs}, stddev);
        site.b = AddParameter(LoraB(site.module.name), {site.module.rows, spec_.rank}, 0);
      }
    }
  }

  void WriteCall(size_t index) {
    const Call& call = graph_.calls[index];
    const auto found = at_call_.find(index);
    if (found == at_call_.end()) return SetOutputs(call, Copy(call, call.attributes));
    LinearAttributes attributes = FromAttributes<LinearAttributes>(call.attributes).value();
    const bool gelu = std::exchange(attributes.gelu, false);
    std::vector<ValueId> outputs = Copy(call, ToAttributes(attributes));
    outputs.resize(1);
    if (outputs[0].valid()) outputs[0] = Adapted(outputs[0], New(call.inputs[0]), found->second);
    if (gelu) outputs.push_back(writer_.Emit("gelu", {}, {outputs[0]})[0]);
    SetOutputs(call, outputs);
  }

  std::vector<ValueId> Copy(const Call& call, Attributes attributes) {
    return writer_.EmitChanging(call.operation, std::move(attributes), New(call.inputs),
                                New(call.adds));
  }
  void SetOutputs(const Call& call, const std::vector<ValueId>& outputs) {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      ids_[static_cast<size_t>(call.outputs[i].value)] = outputs[i];
    }
  }

  // What all adapters of the layer that read x share.
  ValueId Dropped(ValueId x) {
    if (spec_.dropout == 0) return x;
    const auto [found, is_new] = dropped_.try_emplace(x.value);
    if (is_new) {
      const DropoutAttributes attributes{.rate = spec_.dropout,
                                         .draw = kMaxDraws + static_cast<int64_t>(dropped_.size())};
      found->second = writer_.Emit("dropout", ToAttributes(attributes), {x})[0];
    }
    return found->second;
  }

  // scale * A x.
  ValueId Down(const Site& site, ValueId x) {
    const ValueId down = writer_.Emit("linear", {}, {Dropped(x), site.a})[0];
    if (spec_.scale() == 1) return down;
    return writer_.Emit("scale", ToAttributes(ScaleAttributes{spec_.scale()}), {down})[0];
  }

  // y with what the adapters of its weight add to it.
  ValueId Adapted(ValueId y, ValueId x, const std::vector<Site>& sites) {
    const int64_t whole = layer_.parameters[sites[0].module.parameter].shape[0];
    if (sites[0].module.rows == whole) {
      const LinearAttributes attributes{.residual = true};
      return writer_.Emit("linear", ToAttributes(attributes),
                          {Down(sites[0], x), sites[0].b, y})[0];
    }
    std::vector<ValueId> columns;  // side by side they are as wide as y
    int64_t end = 0;
    for (size_t i = 0; i < sites.size(); ++i) {
      const LoraModule& module = sites[i].module;
      ValueId part = writer_.Emit("linear", {}, {Down(sites[i], x), sites[i].b})[0];
      const int64_t before = module.first_row - end;
      end = module.first_row + module.rows;
      const int64_t behind = i + 1 == sites.size() ? whole - end : 0;
      if (before + behind > 0) {
        const SliceGradientAttributes attributes{before, before + module.rows + behind};
        part = writer_.Emit("slice_gradient", ToAttributes(attributes), {part})[0];
      }
      columns.push_back(part);
    }
    const ValueId sum =
        columns.size() == 1 ? columns[0] : writer_.Emit("concatenate", {}, std::move(columns))[0];
    return writer_.Emit("add", {}, {y, sum})[0];
  }

  const NetworkLayer& layer_;
  const LayerGraph& graph_;
  const LoraSpec& spec_;
  std::map<size_t, std::vector<Site>> at_call_;
  LayerWriter writer_;
  std::vector<ValueId> ids_;  // by the values of graph_
  std::vector<ParameterSpec> parameters_;
  std::map<int32_t, ValueId> dropped_;
};

// Of the adapter with A as this parameter.
double ScaleBehind(const LayerGraph& graph, size_t a) {
  ValueId down;
  for (const Call& call : graph.calls) {
    if (call.operation == "linear" && call.inputs[1] == graph.parameters[a]) down = call.outputs[0];
    if (call.operation == "scale" && down.valid() && call.inputs[0] == down) {
      return FromAttributes<ScaleAttributes>(call.attributes).value().factor;
    }
  }
  return 1;
}

absl::Status CheckFields(const LoraSpec& spec, const std::string& path) {
  RETURN_IF_ERROR(CheckRate(absl::StrCat(path, ".dropout"), spec.dropout));
  if (spec.scale() >= kLeastScale && spec.scale() <= kMostScale) {
    return CheckPatterns(spec.targets, absl::StrCat(path, ".targets"));
  }
  return FieldError(absl::StrCat(path, ".alpha"), absl::StrCat(spec.alpha),
                    absl::StrCat("divided by the rank ", spec.rank, " it must be in [", kLeastScale,
                                 ", ", kMostScale, "]"));
}

absl::Status CheckRank(const LoraSpec& spec, const NetworkLayer& layer,
                       const std::vector<LoraModule>& modules, const std::string& path) {
  for (const LoraModule& module : modules) {
    const int64_t inputs = layer.parameters[module.parameter].shape[1];
    const int64_t most = std::min(inputs, module.rows);
    if (spec.rank <= most) continue;
    return FieldError(absl::StrCat(path, ".rank"), absl::StrCat(spec.rank),
                      absl::StrCat("must be <= ", most, ": ", module.name, " has ", inputs,
                                   " inputs and ", module.rows, " outputs"));
  }
  return absl::OkStatus();
}

// "key, proj, qkv, query, value": ends of names, for an error.
std::string SomeModules(const std::vector<std::string>& modules) {
  std::set<std::string> ends;
  for (const std::string& name : modules) ends.insert(name.substr(name.find_last_of("./") + 1));
  std::string text;
  for (const std::string& end : ends) absl::StrAppend(&text, text.empty() ? "" : ", ", end);
  return text;
}

absl::Status CheckTargets(const Targets& targets, const std::vector<std::string>& modules,
                          const std::string& path) {
  const std::optional<size_t> unused = targets.unused();
  if (!unused.has_value()) return absl::OkStatus();
  if (modules.empty()) {
    return FieldError(path, "adapters",
                      "the network has no linear layer for them, its head left out");
  }
  return FieldError(absl::StrCat(path, ".targets[", *unused, "]"),
                    absl::StrCat("\"", targets.pattern(*unused), "\""),
                    absl::StrCat("must match a linear layer's name or its end: there are ",
                                 SomeModules(modules)));
}

absl::Status CheckSize(const NetworkLayer& layer, const std::string& path) {
  if (layer.parameters.size() <= static_cast<size_t>(kMaxLayerParameters)) return absl::OkStatus();
  return FieldError(path,
                    absl::StrCat("layer ", layer.index, " has ", layer.parameters.size(),
                                 " parameter arrays with its adapters"),
                    absl::StrCat("at most ", kMaxLayerParameters));
}

}  // namespace

absl::StatusOr<Network> AddAdapters(Network network, const LoraSpec& spec,
                                    const std::string& path) {
  if (!spec.given()) return network;
  RETURN_IF_ERROR(CheckFields(spec, path));
  const std::set<std::string> shared = SharedNames(network);
  Targets targets(spec);
  SharedLists lists;
  std::vector<std::string> modules;
  for (NetworkLayer& layer : network.layers) {
    if (!layer.states.empty()) {
      return FieldError(path, absl::StrCat("a base with ", layer.states.front().name),
                        "adapters need a network without statistics of batch norms");
    }
    const std::vector<LoraModule> candidates = Candidates(network, layer, shared);
    for (const LoraModule& module : candidates) modules.push_back(module.name);
    const std::vector<LoraModule> chosen = Chosen(candidates, &targets);
    RETURN_IF_ERROR(CheckRank(spec, layer, chosen, path));
    LayerWithAdapters adapted(layer, spec, chosen);
    ASSIGN_OR_RETURN(LayerGraph graph, Annotate(adapted.Write(), path));
    layer.parameters = adapted.TakeParameters();
    RETURN_IF_ERROR(CheckSize(layer, path));
    RETURN_IF_ERROR(Annotate(lists.Set(std::move(graph), &layer), path));
  }
  RETURN_IF_ERROR(CheckTargets(targets, modules, path));
  return WithGradientsOfTrained(std::move(network));
}

std::vector<Adapter> AdaptersOf(const Network& network) {
  std::vector<Adapter> adapters;
  for (const NetworkLayer& layer : network.layers) {
    std::map<std::string, size_t> parameters;  // adapters' own
    for (size_t i = 0; i < layer.parameters.size(); ++i) {
      if (layer.parameters[i].part == Part::kAdapter) parameters[layer.parameters[i].name] = i;
    }
    if (parameters.empty()) continue;
    for (const LoraModule& module : LoraModulesOf(layer)) {
      const auto a = parameters.find(LoraA(module.name));
      if (a == parameters.end()) continue;
      adapters.push_back({.layer = layer.index,
                          .module = module.name,
                          .weight = layer.parameters[module.parameter].name,
                          .first_row = module.first_row,
                          .rows = module.rows,
                          .a = LoraA(module.name),
                          .b = LoraB(module.name),
                          .scale = ScaleBehind(*layer.graph, a->second)});
    }
  }
  return adapters;
}

bool HasBase(const Network& network) {
  return std::any_of(network.layers.begin(), network.layers.end(), [](const NetworkLayer& layer) {
    return std::any_of(
        layer.parameters.begin(), layer.parameters.end(),
        [](const ParameterSpec& parameter) { return parameter.part == Part::kBase; });
  });
}

}  // namespace stagecoach
