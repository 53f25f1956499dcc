#include "network/passes/decoding.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "network/lists/evaluation_calls.h"
#include "network/passes/later_rows.h"
#include "operations/attention/add_sinusoids.h"
#include "operations/attention/attention.h"
#include "operations/attention/cached_attention.h"
#include "operations/attention/embedding.h"
#include "operations/attention/packed_heads.h"
#include "operations/attention/rotary.h"

namespace stagecoach {
namespace {

constexpr int kPositionsInput = 1, kPlacesInput = 2, kHistoryInput = 3, kOwnInputs = 4;

// A wire of one of the two networks while they are written. Held inputs have no number yet.
struct Reads {
  enum class Of { kWire, kInput, kHeld } of = Of::kWire;
  int number = 0;  // of the whole network's wire, the target's own input, or the held value
};

// One layer of one of the two networks, as it is written.
class HalfLayer {
 public:
  HalfLayer(const NetworkLayer& layer, const LayerGraph& graph) : layer_(layer), graph_(graph) {}

  LayerWriter& writer() { return writer_; }
  const std::vector<Reads>& reads() const { return reads_; }
  bool Has(ValueId id) const { return values_.contains(id); }
  ValueId Now(ValueId id) const { return values_.at(id); }
  void Set(ValueId id, ValueId now) { values_[id] = now; }

  ValueId Input(const Reads& reads, const ValueType& type) {
    reads_.push_back(reads);
    return writer_.Input(type, /*gradient=*/false);
  }
  ValueId Parameter(ValueId id) {
    if (Has(id)) return Now(id);
    const Value& value = graph_.value(id);
    ParameterSpec spec;
    if (value.origin == Origin::kState) {  // nothing changes it here
      const StateSpec& state = layer_.states[static_cast<size_t>(value.index)];
      spec.name = state.name;
      spec.shape = state.shape;
    } else {
      spec = layer_.parameters[static_cast<size_t>(value.index)];
    }
    if (!spec.tied()) spec.tied_to = spec.name;
    spec.trained = false;
    parameters_.push_back(std::move(spec));
    Set(id, writer_.Parameter(value.type.element, value.type.shape, /*trained=*/false));
    return Now(id);
  }
  ValueId Cache(const char* name, Shape shape) {
    states_.push_back({.name = absl::StrCat(NamePrefixOf(), name, states_.size()), .shape = shape});
    return writer_.State(std::move(shape), Element::kActivation);
  }

  // The layer without its wires.
  absl::StatusOr<NetworkLayer> Finish(std::vector<ValueId> outputs) {
    ASSIGN_OR_RETURN(LayerGraph graph, writer_.Finish(std::move(outputs)));
    NetworkLayer half{.index = layer_.index, .label = layer_.label, .function = layer_.function};
    half.parameters = std::move(parameters_);
    half.states = std::move(states_);
    half.lists = std::make_shared<const LayerLists>(EvaluationLists(graph));
    half.graph = std::make_shared<const LayerGraph>(std::move(graph));
    return half;
  }

 private:
  std::string NamePrefixOf() const { return absl::StrCat("cache/", layer_.index, "/"); }

  const NetworkLayer& layer_;
  const LayerGraph& graph_;
  LayerWriter writer_;
  std::vector<Reads> reads_;
  std::map<ValueId, ValueId> values_;  // of the whole layer's graph
  std::vector<ParameterSpec> parameters_;
  std::vector<StateSpec> states_;
};

class DecodingWriter {
 public:
  DecodingWriter(const Network& network, int64_t pool_rows) : network_(network) {
    form_.pool = pool_rows;
  }

  absl::StatusOr<DecodingForm> Write() {
    RETURN_IF_ERROR(Begin());
    for (const NetworkLayer& layer : network_.layers) {
      RETURN_IF_ERROR(
          Annotate(WriteLayer(layer), absl::StrCat("layer ", layer.index, ", ", layer.label)));
    }
    if (!Reached(network_.objective.output)) {
      return absl::InvalidArgumentError("its output does not depend on tokens");
    }
    NumberSource();
    NumberTarget();
    return std::move(form_);
  }

 private:
  absl::Status Begin() {
    const WireId tokens = network_.InputNamed(kTokens);
    if (!tokens.valid()) return absl::InvalidArgumentError("reads no tokens");
    form_.context = network_.wire(tokens).type.shape[0];
    const Extent rows{form_.context, Length::kTarget};
    const auto ids = [](Shape shape) {
      return ValueType{Element::kIds, Leading::kSamples, std::move(shape)};
    };
    own_types_ = {ids(Shape::Of({rows})), ids(Shape::Of({rows})), ids(Shape::Of({rows})),
                  ids(Shape::Of({rows, {form_.context}}))};
    now_[tokens] = own_types_[0];
    form_.source.precision = form_.target.precision = network_.precision;
    return absl::OkStatus();
  }

  bool Reached(WireId wire) const { return now_.contains(wire); }

  absl::Status WriteLayer(const NetworkLayer& layer) {
    LayerGraph graph = *layer.graph;
    std::vector<ValueId> outputs;
    graph.calls = EvaluationCalls(*layer.graph, &outputs);
    std::set<ValueId> reached;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      if (Reached(layer.inputs[i])) reached.insert(graph.inputs[i]);
    }
    for (const Call& call : graph.calls) {
      const bool any = std::any_of(call.inputs.begin(), call.inputs.end(),
                                   [&](ValueId id) { return reached.contains(id); });
      if (any) reached.insert(call.outputs.begin(), call.outputs.end());
    }
    return WriteHalves({layer, graph, outputs, reached});
  }

  struct Parts {
    const NetworkLayer& layer;
    const LayerGraph& graph;
    const std::vector<ValueId>& outputs;
    const std::set<ValueId>& reached;
    bool Moves(const Call& call) const { return reached.contains(call.outputs[0]); }
    bool IsParameter(ValueId id) const {
      const Origin origin = graph.value(id).origin;
      return origin == Origin::kParameter || origin == Origin::kState;
    }
  };

  absl::Status WriteHalves(const Parts& parts) {
    HalfLayer source(parts.layer, parts.graph), target(parts.layer, parts.graph);
    // What the target reads of the source, in the order in which its calls meet it.
    std::vector<ValueId> held;
    for (const Call& call : parts.graph.calls) {
      if (parts.Moves(call)) continue;
      RETURN_IF_ERROR(WriteFixed(call, parts, &source));
    }
    for (size_t i = 0; i < parts.layer.inputs.size(); ++i) {
      const WireId wire = parts.layer.inputs[i];
      if (!Reached(wire)) continue;
      target.Set(parts.graph.inputs[i],
                 target.Input({Reads::Of::kWire, wire.value}, now_.at(wire)));
    }
    for (const Call& call : parts.graph.calls) {
      if (!parts.Moves(call)) continue;
      RETURN_IF_ERROR(Hold(call, parts, &source, &target, &held));
      RETURN_IF_ERROR(Annotate(WriteMoving(call, parts, &target), call.operation));
    }
    return FinishHalves(parts, held, &source, &target);
  }

  // A call that no token reaches, as it is.
  absl::Status WriteFixed(const Call& call, const Parts& parts, HalfLayer* source) {
    std::vector<ValueId> inputs;
    for (const ValueId id : call.inputs) inputs.push_back(FixedValue(id, parts, source));
    const std::vector<ValueId> made =
        source->writer().Emit(call.operation, call.attributes, std::move(inputs));
    for (size_t i = 0; i < call.outputs.size(); ++i) source->Set(call.outputs[i], made[i]);
    return source->writer().status();
  }

  ValueId FixedValue(ValueId id, const Parts& parts, HalfLayer* source) {
    if (parts.IsParameter(id)) return source->Parameter(id);
    if (source->Has(id)) return source->Now(id);
    const Value& value = parts.graph.value(id);
    CHECK(value.origin == Origin::kInput) << "a value that nothing makes";
    const WireId wire = parts.layer.inputs[static_cast<size_t>(value.index)];
    source->Set(id, source->Input({Reads::Of::kWire, wire.value}, value.type));
    return source->Now(id);
  }

  // Lets the target read what the call needs of the source.
  absl::Status Hold(const Call& call, const Parts& parts, HalfLayer* source, HalfLayer* target,
                    std::vector<ValueId>* held) {
    for (const ValueId id : call.inputs) {
      if (parts.IsParameter(id) || parts.reached.contains(id) || target->Has(id)) continue;
      if (call.operation == "attention") continue;  // its documents: a text is one
      FixedValue(id, parts, source);
      target->Set(id, target->Input({Reads::Of::kHeld, static_cast<int>(held_types_.size())},
                                    parts.graph.value(id).type));
      held_types_.push_back(parts.graph.value(id).type);
      held->push_back(id);
    }
    return absl::OkStatus();
  }

  // A call that tokens reach, for new rows.
  absl::Status WriteMoving(const Call& call, const Parts& parts, HalfLayer* target) {
    std::vector<ValueId> inputs;
    for (const ValueId id : call.inputs) {
      if (call.operation == "attention" && !inputs.empty()) break;
      inputs.push_back(parts.IsParameter(id) ? target->Parameter(id) : target->Now(id));
    }
    ASSIGN_OR_RETURN(const std::vector<ValueId> made, EmitMoving(call, parts, inputs, target));
    RETURN_IF_ERROR(target->writer().status());
    CHECK_LE(made.size(), call.outputs.size()) << call.operation;
    for (size_t i = 0; i < made.size(); ++i) target->Set(call.outputs[i], made[i]);
    return absl::OkStatus();
  }

  using Values = std::vector<ValueId>;
  absl::StatusOr<Values> EmitMoving(const Call& call, const Parts& parts, const Values& inputs,
                                    HalfLayer* target) {
    if (call.operation == "attention") return EmitAttention(call, inputs, target);
    if (call.operation == "embedding") return EmitEmbedding(inputs, target);
    if (call.operation == "rotary") {
      ASSIGN_OR_RETURN(RotaryAttributes attributes,
                       FromAttributes<RotaryAttributes>(call.attributes));
      attributes.positions = form_.context;
      return target->writer().Emit("rotary", ToAttributes(attributes),
                                   {inputs[0], Own(kPositionsInput, target)});
    }
    if (call.operation == "add_sinusoids") {
      return target->writer().Emit("add_sinusoids",
                                   ToAttributes(AddSinusoidsAttributes{.positions = form_.context}),
                                   {inputs[0], Own(kPositionsInput, target)});
    }
    if (!IsRowByRow(call.operation)) RETURN_IF_ERROR(CheckCross(call, parts));
    return target->writer().Emit(call.operation, call.attributes, inputs);
  }

  // Each row of a cross attention reads what the source holds.
  static absl::Status CheckCross(const Call& call, const Parts& parts) {
    const bool cross = call.operation == "cross_attention" &&
                       !parts.reached.contains(call.inputs[1]) &&
                       !parts.reached.contains(call.inputs[2]);
    if (cross) return absl::OkStatus();
    return absl::InvalidArgumentError("does not make each row by the row of its token");
  }

  absl::StatusOr<Values> EmitAttention(const Call& call, const Values& inputs, HalfLayer* target) {
    ASSIGN_OR_RETURN(const AttentionAttributes attributes,
                     FromAttributes<AttentionAttributes>(call.attributes));
    if (attributes.full) {
      return absl::InvalidArgumentError("sees rows that are still to be written");
    }
    LayerWriter& writer = target->writer();
    const PackedHeads packed =
        PackedHeadsOf(writer.type(inputs[0]), attributes.heads, attributes.key_heads);
    const Shape pool{form_.pool, packed.key_heads * packed.head_width};
    const ValueId keys = target->Cache("keys.", pool), values = target->Cache("values.", pool);
    const CachedAttentionAttributes cached{.heads = attributes.heads,
                                           .key_heads = attributes.key_heads};
    return writer.EmitChanging("cached_attention", ToAttributes(cached),
                               {inputs[0], Own(kPlacesInput, target), Own(kPositionsInput, target),
                                Own(kHistoryInput, target)},
                               {keys, values});
  }

  // Positions are looked up like tokens.
  absl::StatusOr<Values> EmitEmbedding(const Values& inputs, HalfLayer* target) {
    LayerWriter& writer = target->writer();
    const Attributes tokens_only = ToAttributes(EmbeddingAttributes{.tokens_only = true});
    const Values tokens = writer.Emit("embedding", tokens_only, {inputs[0], inputs[1]});
    if (inputs.size() == 2) return tokens;
    const Values positions =
        writer.Emit("embedding", tokens_only, {Own(kPositionsInput, target), inputs[2]});
    return writer.Emit("add", {}, {tokens[0], positions[0]});
  }

  // An input of the target that the network does not have; once a layer.
  ValueId Own(int number, HalfLayer* target) {
    const ValueId key(-2 - number);
    if (!target->Has(key)) {
      target->Set(
          key, target->Input({Reads::Of::kInput, number}, own_types_[static_cast<size_t>(number)]));
    }
    return target->Now(key);
  }

  absl::Status FinishHalves(const Parts& parts, const std::vector<ValueId>& held, HalfLayer* source,
                            HalfLayer* target) {
    std::vector<ValueId> fixed, moving;  // outputs
    Half made_source, made_target;
    for (size_t i = 0; i < parts.outputs.size(); ++i) {
      const ValueId id = parts.outputs[i];
      const WireId wire = parts.layer.outputs[i];
      if (parts.reached.contains(id)) {
        moving.push_back(target->Now(id));
        made_target.outputs.push_back({Reads::Of::kWire, wire.value});
        now_[wire] = target->writer().type(moving.back());
      } else {
        fixed.push_back(FixedValue(id, parts, source));
        made_source.outputs.push_back({Reads::Of::kWire, wire.value});
      }
    }
    const int first_held = static_cast<int>(held_types_.size() - held.size());
    for (size_t i = 0; i < held.size(); ++i) {
      fixed.push_back(source->Now(held[i]));
      made_source.outputs.push_back({Reads::Of::kHeld, first_held + static_cast<int>(i)});
    }
    ASSIGN_OR_RETURN(made_source.layer, source->Finish(std::move(fixed)));
    ASSIGN_OR_RETURN(made_target.layer, target->Finish(std::move(moving)));
    made_source.reads = source->reads();
    made_target.reads = target->reads();
    source_.push_back(std::move(made_source));
    target_.push_back(std::move(made_target));
    return absl::OkStatus();
  }

  struct Half {
    NetworkLayer layer;
    std::vector<Reads> reads, outputs;
  };

  // Gives the wires of the source their numbers: inputs first, then layer by layer. A held value is
  // an output of its layer, even if it is an input as well.
  void NumberSource() {
    std::map<int, WireId> wires;
    Network& network = form_.source;
    for (const Half& half : source_) {
      for (const Reads& reads : half.reads) {
        const WireId wire(reads.number);
        if (!network_.IsInput(wire) || wires.contains(wire.value)) continue;
        wires[wire.value] = WireId(static_cast<int32_t>(network.inputs.size()));
        network.inputs.push_back(network_.input(wire));
        network.wires.push_back({.type = network_.wire(wire).type});
      }
    }
    for (Half& half : source_) {
      for (const Reads& reads : half.reads) half.layer.inputs.push_back(wires.at(reads.number));
      for (size_t i = 0; i < half.outputs.size(); ++i) {
        const WireId id(static_cast<int32_t>(network.wires.size()));
        const ValueId value = half.layer.lists->outputs[i];
        network.wires.push_back({half.layer.lists->value(value).type, half.layer.index, false});
        half.layer.outputs.push_back(id);
        const Reads& output = half.outputs[i];
        if (output.of == Reads::Of::kWire) {
          wires[output.number] = id;
        } else {
          form_.held.push_back({.layer = half.layer.index, .made = id, .read = WireId()});
        }
      }
      network.layers.push_back(std::move(half.layer));
    }
  }

  void NumberTarget() {
    Network& network = form_.target;
    for (const char* name : {kTokens, kPositions, kPlaces, kHistory}) {
      network.wires.push_back({.type = own_types_[network.inputs.size()]});
      network.inputs.push_back({.name = name});
    }
    std::map<int, WireId> wires = {{network_.InputNamed(kTokens).value, WireId(0)}};
    for (size_t i = 0; i < held_types_.size(); ++i) {
      form_.held[i].read = WireId(static_cast<int32_t>(network.wires.size()));
      network.wires.push_back({.type = held_types_[i]});
      network.inputs.push_back({.name = absl::StrCat("held ", i)});
    }
    const auto number = [&](const Reads& reads) {
      if (reads.of == Reads::Of::kInput) return WireId(reads.number);
      if (reads.of == Reads::Of::kHeld) return form_.held[static_cast<size_t>(reads.number)].read;
      return wires.at(reads.number);
    };
    for (Half& half : target_) {
      for (const Reads& reads : half.reads) half.layer.inputs.push_back(number(reads));
      for (const Reads& output : half.outputs) {
        const WireId id(static_cast<int32_t>(network.wires.size()));
        network.wires.push_back({now_.at(WireId(output.number)), half.layer.index, false});
        wires[output.number] = id;
        half.layer.outputs.push_back(id);
      }
      network.layers.push_back(std::move(half.layer));
    }
    network.objective = network_.objective;
    network.objective.output = wires.at(network_.objective.output.value);
    network.objective.auxiliary = WireId();
    network.objective.targets = network.objective.weights = WireId();
  }

  const Network& network_;
  DecodingForm form_;
  std::vector<ValueType> own_types_;  // of the target's own inputs
  std::map<WireId, ValueType> now_;   // wires of the network that tokens reach
  std::vector<ValueType> held_types_;
  std::vector<Half> source_, target_;
};

}  // namespace

absl::StatusOr<DecodingForm> DecodingOf(const Network& network, int64_t pool_rows) {
  return DecodingWriter(network, pool_rows).Write();
}

}  // namespace stagecoach
