#include "network/passes/lora_modules.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/attention/cross_attention.h"
#include "operations/attention/packed_heads.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

struct Projection {
  const char* name;
  int64_t rows;
};

int64_t CountOf(const Call& call, std::string_view name) {
  const AttributeValue* const value = call.attributes.Find(name);
  return value == nullptr ? 0 : std::get<int64_t>(*value);
}

// The projections in the rows of `value`, which an attention reads as `input`. Norms of heads and
// rotations in front of the attention have its heads.
std::vector<Projection> ProjectionsIn(const LayerGraph& graph, const Call& call, size_t input) {
  const ValueType& type = graph.value(call.inputs[input]).type;
  if (call.operation == "cross_attention") {
    const int64_t width = type.shape.back();
    if (input == 0) return {{"query", width}};
    if (input == 1) return {{"key", width / 2}, {"value", width / 2}};
    return {};
  }
  const bool packed =
      call.operation == "attention" || call.operation == "head_norm" || call.operation == "rotary";
  if (!packed || input != 0) return {};
  const PackedHeads heads = PackedHeadsOf(type, CountOf(call, "heads"), CountOf(call, "key_heads"));
  const int64_t keys = heads.key_heads * heads.head_width;
  return {{"query", heads.query_width()}, {"key", keys}, {"value", keys}};
}

// Where an adapter adds to the value: the sum.
std::optional<ValueId> SumWith(const Call& call, size_t input) {
  const bool adds = call.operation == "add" ||
                    (call.operation == "linear" && input >= 2 && input + 1 == call.inputs.size() &&
                     call.attributes.Find("residual") != nullptr &&
                     *call.attributes.Find("residual") == AttributeValue(true));
  return adds ? std::optional(call.outputs[0]) : std::nullopt;
}

// The projections that the linear's output consists of; empty: it is one.
std::vector<Projection> ProjectionsOf(const LayerGraph& graph, size_t linear) {
  ValueId value = graph.calls[linear].outputs[0];
  for (size_t next = linear + 1; next < graph.calls.size(); ++next) {
    const Call& call = graph.calls[next];
    const auto read = std::find(call.inputs.begin(), call.inputs.end(), value);
    if (read == call.inputs.end()) continue;
    const auto input = static_cast<size_t>(read - call.inputs.begin());
    if (std::vector<Projection> found = ProjectionsIn(graph, call, input); !found.empty()) {
      return found;
    }
    const std::optional<ValueId> sum = SumWith(call, input);
    if (!sum.has_value()) return {};
    value = *sum;
  }
  return {};
}

constexpr std::string_view kWeight = ".weight";

// "model/0003/attention." of "model/0003/attention.qkv.weight".
std::string PrefixOf(const std::string& module) {
  return module.substr(0, module.find_last_of("./") + 1);
}

}  // namespace

std::vector<LoraModule> LoraModulesOf(const NetworkLayer& layer) {
  std::vector<LoraModule> modules;
  const LayerGraph& graph = *layer.graph;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Call& call = graph.calls[i];
    if (call.operation != "linear") continue;
    const Value& weight = graph.value(call.inputs[1]);
    if (weight.origin != Origin::kParameter) continue;
    const auto parameter = static_cast<size_t>(weight.index);
    const ParameterSpec& spec = layer.parameters[parameter];
    if (spec.part == ParameterSpec::Part::kAdapter || !spec.name.ends_with(kWeight)) continue;
    const std::string whole = spec.name.substr(0, spec.name.size() - kWeight.size());
    modules.push_back({whole, i, parameter, 0, spec.shape[0], true});
    int64_t first = 0;
    for (const auto& [name, rows] : ProjectionsOf(graph, i)) {
      modules.push_back({absl::StrCat(PrefixOf(whole), name), i, parameter, first, rows, false});
      first += rows;
    }
  }
  return modules;
}

std::string LoraA(const std::string& module) { return absl::StrCat(module, ".lora_a.weight"); }
std::string LoraB(const std::string& module) { return absl::StrCat(module, ".lora_b.weight"); }

}  // namespace stagecoach
