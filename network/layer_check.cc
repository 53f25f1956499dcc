#include "network/layer_check.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "network/limits.h"
#include "network/lists/lists.h"

namespace stagecoach {
namespace {

constexpr size_t kLongestPath = 512;
constexpr int64_t kMostElements = int64_t{1} << 36;  // of one value, of a sample

template <typename... Parts>
absl::Status Refused(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// They are keys in checkpoints.
absl::Status CheckName(const std::string& name, std::set<std::string>* names) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' ||
           c == '-';
  });
  if (!plain || name.empty() || name.back() == '/' || name.size() > kLongestPath) {
    return Refused("a name of ", name.size(), " bytes; must be 1 to ", kLongestPath,
                   " letters, digits, _ - . and /");
  }
  if (names->insert(name).second) return absl::OkStatus();
  return Refused("two arrays ", name);
}

absl::Status CheckArrays(const BuiltLayer& layer) {
  std::set<std::string> names;
  if (layer.parameters.size() + layer.states.size() > static_cast<size_t>(kMaxLayerParameters)) {
    return Refused("more than ", kMaxLayerParameters, " parameters and states");
  }
  for (const ParameterSpec& parameter : layer.parameters) {
    RETURN_IF_ERROR(CheckName(parameter.name, &names));
    const double stddev = parameter.init_stddev;
    if (!(stddev >= 0 && stddev <= 1e6)) return Refused(parameter.name, ": begins with ", stddev);
  }
  for (const StateSpec& state : layer.states) RETURN_IF_ERROR(CheckName(state.name, &names));
  for (const Value& value : layer.graph.values) {
    RETURN_IF_ERROR(CheckArrayType(value.type));
    const bool own = value.origin == Origin::kParameter || value.origin == Origin::kState;
    if (!own || value.type.shape.elements() <= kMaxArray) continue;
    return Refused("an array of ", value.type.shape.elements(), " elements; at most ", kMaxArray);
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const LayerGraph& graph) {
  if (graph.outputs.empty()) return Refused("gives nothing");
  std::set<ValueId> outputs;
  for (const ValueId id : graph.outputs) {
    const Value& value = graph.value(id);
    if (!outputs.insert(id).second) return Refused("gives value ", id.value, " twice");
    const bool goes_on = value.origin == Origin::kInput || value.origin == Origin::kCall;
    if (goes_on && value.type.leading == Leading::kSamples &&
        value.type.element != Element::kFloat64) {
      continue;
    }
    return Refused("gives value ", id.value, ", ", FormatType(value.type),
                   ", which cannot go from layer to layer");
  }
  return absl::OkStatus();
}

// What nothing reads has no gradient, and nobody would find out whether it could have one.
absl::Status CheckAllRead(const LayerGraph& graph) {
  std::set<ValueId> read(graph.outputs.begin(), graph.outputs.end());
  for (const Call& call : graph.calls) read.insert(call.inputs.begin(), call.inputs.end());
  for (const Call& call : graph.calls) {
    const bool any = std::any_of(call.outputs.begin(), call.outputs.end(),
                                 [&read](ValueId id) { return read.contains(id); });
    if (!any) return Refused(call.operation, ": nothing reads what it gives");
  }
  return absl::OkStatus();
}

// Also where nothing is trained now: operations of a backward stand in no forward.
absl::Status CheckTrainable(LayerGraph graph) {
  bool any = false;
  for (Value& value : graph.values) {
    const bool own = value.origin == Origin::kInput || value.origin == Origin::kParameter;
    if (!own || !value.constant || value.type.element == Element::kIds) continue;
    value.constant = false;
    any = true;
  }
  return any ? TryDifferentiate(graph).status() : absl::OkStatus();
}

}  // namespace

absl::Status CheckArrayType(const ValueType& type) {
  for (const int64_t extent : type.shape.extents()) {
    if (extent < 1 || extent > kMaxImageNumbers) {
      return Refused(FormatType(type), ": extents must be 1 to ", kMaxImageNumbers);
    }
  }
  ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(type.shape.extents()));
  if (elements <= kMostElements) return absl::OkStatus();
  return Refused(FormatType(type), ": at most ", kMostElements, " elements");
}

absl::Status CheckLayer(const BuiltLayer& layer) {
  RETURN_IF_ERROR(CheckArrays(layer));
  RETURN_IF_ERROR(CheckOutputs(layer.graph));
  RETURN_IF_ERROR(CheckAllRead(layer.graph));
  return CheckTrainable(layer.graph);
}

}  // namespace stagecoach
