#include "network/network_builder.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "network/limits.h"
#include "network/lists/cost.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

// Of one sample, forward and backward.
double FlopsOf(const Network& network) {
  std::map<const LayerLists*, double> known;  // equal layers share their lists
  double sum = 0;
  for (const NetworkLayer& layer : network.layers) {
    const auto [found, is_new] = known.try_emplace(layer.lists.get(), 0.0);
    if (is_new) {
      const ListCost cost = CostOfLists(*layer.lists);
      found->second =
          static_cast<double>(cost.forward_flops) + static_cast<double>(cost.backward_flops);
    }
    sum += found->second;
  }
  return sum;
}

// A name stands for one number: data sources give the network's inputs, and all other extents with
// names follow from these.
absl::Status CheckLengths(const Network& network, const std::string& path) {
  Lengths largest;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const Shape& shape = network.wires[i].type.shape;
    for (int k = 0; k < shape.rank(); ++k) {
      const auto [size, length] = shape.extent(k);
      if (length == Length::kNone) continue;
      if (largest.of(length) == 0) largest.Set(length, size);
      if (largest.of(length) == size) continue;
      return FieldError(path,
                        absl::StrCat(network.inputs[i].name, " of ", LengthName(length), " ", size),
                        absl::StrCat("must be ", largest.of(length), ", as of inputs before it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

WireId NetworkBuilder::Input(const std::string& name, ValueType type, int64_t classes) {
  CHECK(network_.layers.empty()) << "inputs come before layers";
  CHECK_EQ(type.element == Element::kIds, classes > 0) << "classes of input " << name;
  CHECK(!network_.InputNamed(name).valid()) << "two inputs " << name;
  network_.inputs.push_back({name, classes});
  network_.wires.push_back({.type = std::move(type), .maker = -1, .gradient = false});
  return WireId(static_cast<int32_t>(network_.wires.size()) - 1);
}

absl::StatusOr<std::vector<WireId>> NetworkBuilder::Add(const Naming& naming,
                                                        const std::vector<WireId>& inputs,
                                                        const Write& write) {
  LayerBuilder builder(static_cast<int>(network_.layers.size()), branch_stddev_, facts_);
  std::vector<ValueId> values;
  for (const WireId id : inputs) {
    values.push_back(builder.writer().Input(type(id), network_.wire(id).gradient));
  }
  ASSIGN_OR_RETURN(std::vector<ValueId> outputs, write(values, builder));
  if (builder.writer().status().ok()) {
    for (const ValueId y : outputs) RETURN_IF_ERROR(builder.CheckSizes({.path = naming.path}, y));
  }
  ASSIGN_OR_RETURN(BuiltLayer built, Annotate(builder.Finish(std::move(outputs)), naming.path));
  return Add(naming, inputs, std::move(built));
}

absl::Status NetworkBuilder::CheckInputs(const std::vector<WireId>& inputs,
                                         const LayerGraph& graph) const {
  if (inputs.empty() || inputs.size() != graph.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reads ", inputs.size(), " wires and has ", graph.inputs.size(), " inputs"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Wire& wire = network_.wire(inputs[i]);
    const Value& input = graph.value(graph.inputs[i]);
    if (std::count(inputs.begin(), inputs.end(), inputs[i]) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("reads wire ", inputs[i].value, " twice"));
    }
    if (input.type == wire.type && input.constant == !wire.gradient) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("its input ", i, " is ", FormatType(input.type),
                     input.constant ? "" : " with a gradient", ", and wire ", inputs[i].value,
                     " is ", FormatType(wire.type), wire.gradient ? " with a gradient" : ""));
  }
  return absl::OkStatus();
}

absl::Status NetworkBuilder::CheckIds(const std::vector<WireId>& inputs,
                                      const LayerGraph& graph) const {
  for (const Call& call : graph.calls) {
    CallTypes types;
    for (const ValueId id : call.inputs) types.inputs.push_back(graph.value(id).type);
    for (const ValueId id : call.outputs) types.outputs.push_back(graph.value(id).type);
    const std::optional<int64_t> below =
        OperationNamed(call.operation).RowsOfTable(call.attributes, types);
    for (const ValueId id : call.inputs) {
      const Value& value = graph.value(id);
      if (!below.has_value() || value.type.element != Element::kIds) continue;
      const bool known = value.origin == Origin::kInput &&
                         network_.IsInput(inputs[static_cast<size_t>(value.index)]);
      const int64_t classes =
          known ? network_.input(inputs[static_cast<size_t>(value.index)]).classes : 0;
      if (known && classes <= *below) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(call.operation, ": reads ids ",
                       known ? absl::StrCat("below ", classes) : "that a layer makes",
                       "; must be ids of the data source below ", *below));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WireId>> NetworkBuilder::Add(const Naming& naming,
                                                        const std::vector<WireId>& inputs,
                                                        BuiltLayer built) {
  RETURN_IF_ERROR(Annotate(CheckInputs(inputs, built.graph), naming.path));
  RETURN_IF_ERROR(Annotate(CheckIds(inputs, built.graph), naming.path));
  NetworkLayer layer;
  layer.index = static_cast<int>(network_.layers.size());
  layer.label = naming.label;
  layer.function = naming.function;
  layer.inputs = inputs;
  layer.parameters = std::move(built.parameters);
  layer.states = std::move(built.states);
  for (const ParameterSpec& parameter : layer.parameters) {
    parameters_ += parameter.shape.elements();
  }
  arrays_ += static_cast<int64_t>(layer.parameters.size() + layer.states.size());
  if (arrays_ > kMaxArrays) {
    return FieldError(naming.path, absl::StrCat("the ", arrays_, "th parameter of the network"),
                      absl::StrCat("at most ", kMaxArrays, ": use fewer layers"));
  }
  RETURN_IF_ERROR(Annotate(lists_.Set(std::move(built.graph), &layer), naming.path));
  const LayerLists& lists = *layer.lists;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (network_.wire(inputs[i]).gradient == lists.input_gradients[i].valid()) continue;
    return Annotate(absl::InvalidArgumentError(
                        absl::StrCat("nothing that it gives depends on wire ", inputs[i].value)),
                    naming.path);
  }
  for (size_t i = 0; i < lists.outputs.size(); ++i) {
    // What a layer hands on as it is, as a dropout that is off does, stays the same wire: it is the
    // same memory.
    const auto same = std::find(lists.inputs.begin(), lists.inputs.end(), lists.outputs[i]);
    if (same != lists.inputs.end()) {
      layer.outputs.push_back(inputs[static_cast<size_t>(same - lists.inputs.begin())]);
      continue;
    }
    layer.outputs.push_back(WireId(static_cast<int32_t>(network_.wires.size())));
    network_.wires.push_back({.type = lists.value(lists.outputs[i]).type,
                              .maker = layer.index,
                              .gradient = lists.output_gradients[i].valid()});
  }
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().outputs;
}

absl::StatusOr<WireId> NetworkBuilder::Add(const Naming& naming, WireId input,
                                           const SideInputs<WireId>& sides, const WriteOne& write) {
  std::vector<WireId> inputs = {input};
  for (const WireId id : {sides.documents, sides.length, sides.memory, sides.memory_length}) {
    if (id.valid()) inputs.push_back(id);
  }
  const auto write_all = [&](const std::vector<ValueId>& values,
                             LayerBuilder& builder) -> absl::StatusOr<std::vector<ValueId>> {
    size_t next = 1;
    const auto value = [&](WireId id) { return id.valid() ? values[next++] : ValueId(); };
    builder.SetSideInputs({.documents = value(sides.documents),
                           .length = value(sides.length),
                           .memory = value(sides.memory),
                           .memory_length = value(sides.memory_length)});
    ASSIGN_OR_RETURN(const ValueId y, write(values[0], builder));
    return std::vector<ValueId>{y};
  };
  ASSIGN_OR_RETURN(const std::vector<WireId> outputs, Add(naming, inputs, write_all));
  return outputs[0];
}

absl::StatusOr<WireId> NetworkBuilder::Add(const LayerSpec& spec, const std::string& path,
                                           WireId input, const SideInputs<WireId>& sides) {
  const auto write = [&](ValueId x, LayerBuilder& builder) {
    return BuildLayer(spec, x, {.path = path}, builder);
  };
  ASSIGN_OR_RETURN(const WireId y,
                   Add({.label = LayerLabel(spec), .path = path}, input, sides, write));
  // Known by now to be a kind that there is.
  const std::string function = LayerFunction(spec);
  network_.layers.back().function = function.empty() ? "identity" : function;
  return y;
}

absl::Status NetworkBuilder::CheckCuts(const std::string& path) const {
  const std::vector<int> last_reader = LastReaders(network_);
  const int layers = static_cast<int>(network_.layers.size());
  std::vector<int> change(static_cast<size_t>(layers) + 1, 0), trained = change;
  for (size_t i = network_.inputs.size(); i < network_.wires.size(); ++i) {
    const Wire& wire = network_.wires[i];
    if (last_reader[i] < 0) {
      return FieldError(path,
                        absl::StrCat("layer ", wire.maker, " (",
                                     network_.layers[static_cast<size_t>(wire.maker)].label,
                                     ") makes ", FormatType(wire.type), ", which nothing reads"),
                        "leave the layer out, or use what it gives");
    }
    ++change[static_cast<size_t>(wire.maker)];
    --change[static_cast<size_t>(last_reader[i])];
    if (!wire.gradient) continue;
    ++trained[static_cast<size_t>(wire.maker)];
    --trained[static_cast<size_t>(last_reader[i])];
  }
  int alive = 0, with_gradient = 0;
  bool began = false;  // what is of use leads to the loss, and with it its gradient comes back
  for (int i = 0; i + 1 < layers; ++i) {
    alive += change[static_cast<size_t>(i)];
    with_gradient += trained[static_cast<size_t>(i)];
    CHECK(with_gradient > 0 || !began) << "no gradient behind layer " << i;
    began = with_gradient > 0;
    if (alive <= kMaxCutValues) continue;
    return FieldError(path, absl::StrCat(alive, " values go on behind layer ", i),
                      absl::StrCat("at most ", kMaxCutValues, ": put more into one layer"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Network> NetworkBuilder::Finish(const Ends& ends, const std::string& path) {
  const Wire& output = network_.wire(ends.output);
  CHECK(network_.IsInput(ends.targets)) << "targets come from the data source";
  CHECK(output.maker >= 0) << "the output comes from a layer";
  const bool auxiliary = ends.auxiliary.valid();
  CHECK(!auxiliary || network_.wire(ends.auxiliary).maker >= 0) << "outputs come from layers";
  const bool trains = output.gradient || (auxiliary && network_.wire(ends.auxiliary).gradient);
  // One that only writes has parameters, and trains none of them.
  if (!trains && parameters_ == 0) {
    return FieldError(path, "no parameters", "must have a layer that can be trained");
  }
  network_.objective.output = ends.output;
  network_.objective.targets = ends.targets;
  network_.objective.auxiliary = ends.auxiliary;
  network_.objective.auxiliary_weight = ends.auxiliary_weight;
  if (parameters_ > kMaxParameters) {
    return FieldError(path, absl::StrCat("over ", kMaxParameters, " parameters"),
                      "use smaller or fewer layers");
  }
  if (FlopsOf(network_) > kMaxFlops) {
    return FieldError(path, absl::StrCat("over ", kMaxFlops, " FLOPs a sample"),
                      "use smaller or fewer layers");
  }
  RETURN_IF_ERROR(CheckLengths(network_, path));
  RETURN_IF_ERROR(CheckCuts(path));
  return std::move(network_);
}

}  // namespace stagecoach
