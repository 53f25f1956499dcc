// NetworkFromProto: a network from whoever sends bytes. What is read here becomes indexes, sizes of
// allocations and arguments of kernels, so each number is checked before it is used.
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "network/layer_builder.h"
#include "network/layer_check.h"
#include "network/limits.h"
#include "network/network_builder.h"
#include "network/objective_kind.h"
#include "network/passes/tied.h"
#include "operations/catalogue.h"
#include "services/common/convert/fields/known_fields.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

constexpr int kMostInputs = 64;        // of the data source
constexpr int kMostEntries = 1 << 15;  // of a form
constexpr size_t kLongestName = 4096;  // of what is for people

template <typename... Parts>
absl::Status Refused(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckText(const char* what, const std::string& text) {
  if (text.size() <= kLongestName) return absl::OkStatus();
  return Refused("a ", what, " of ", text.size(), " bytes; at most ", kLongestName);
}

// Values stand in one order on both sides (network_writer.cc); 0 of a message is none.
template <typename Value, typename Proto>
absl::StatusOr<Value> ReadEnum(const char* what, Proto proto) {
  const auto* const type = google::protobuf::GetEnumDescriptor<Proto>();
  const int number = proto;
  if (number != 0 && type->FindValueByNumber(number) != nullptr) {
    return static_cast<Value>(number - 1);
  }
  return Refused(what, " ", number, ": this version does not know that value");
}

absl::StatusOr<ParameterSpec::Part> ReadPart(int number) {
  if (v1::Network::Part_IsValid(number)) return static_cast<ParameterSpec::Part>(number);
  return Refused("part ", number, ": this version does not know that value");
}

absl::StatusOr<ValueType> ReadType(Element element, Leading leading,
                                   const google::protobuf::RepeatedField<int64_t>& extents) {
  if (extents.size() > Shape::kMaxRank) {
    return Refused("an array of ", extents.size(), " extents; at most ", Shape::kMaxRank);
  }
  ValueType type{element, leading, Shape(std::vector<int64_t>(extents.begin(), extents.end()))};
  RETURN_IF_ERROR(CheckArrayType(type));
  return type;
}

absl::StatusOr<ValueType> ReadType(const v1::Network::ValueType& proto) {
  ASSIGN_OR_RETURN(const Element element, ReadEnum<Element>("element", proto.element()));
  const Leading leading = proto.once() ? Leading::kOne : Leading::kSamples;
  ASSIGN_OR_RETURN(ValueType type, ReadType(element, leading, proto.extents()));
  if (proto.lengths().empty()) return type;
  if (proto.once() || proto.lengths_size() != proto.extents_size()) {
    return Refused(FormatType(type), ": has ", proto.lengths_size(), " names of extents; must be ",
                   proto.once() ? 0 : proto.extents_size());
  }
  for (int i = 0; i < proto.lengths_size(); ++i) {
    const int length = proto.lengths(i);
    if (length < 0 || length > static_cast<int>(kNamedLengths.back())) {
      return Refused("length ", length, ": this version does not know that value");
    }
    type.shape = type.shape.With(i, {type.shape[i], static_cast<Length>(length)});
  }
  return type;
}

absl::StatusOr<AttributeValue> ReadValue(const v1::Network::Attribute& proto) {
  switch (proto.value_case()) {
    case v1::Network::Attribute::kFlag:
      return AttributeValue(proto.flag());
    case v1::Network::Attribute::kCount:
      return AttributeValue(proto.count());
    case v1::Network::Attribute::kNumber:
      return AttributeValue(proto.number());
    case v1::Network::Attribute::kText:
      return AttributeValue(proto.text());
    case v1::Network::Attribute::kCounts:
      return AttributeValue(
          std::vector<int64_t>(proto.counts().values().begin(), proto.counts().values().end()));
    case v1::Network::Attribute::kNumbers:
      return AttributeValue(
          std::vector<double>(proto.numbers().values().begin(), proto.numbers().values().end()));
    case v1::Network::Attribute::kTexts:
      return AttributeValue(
          std::vector<std::string>(proto.texts().values().begin(), proto.texts().values().end()));
    case v1::Network::Attribute::VALUE_NOT_SET:
      break;
  }
  return Refused("attribute ", absl::CEscape(proto.name().substr(0, 80)), ": has no value");
}

absl::StatusOr<Attributes> ReadAttributes(
    const google::protobuf::RepeatedPtrField<v1::Network::Attribute>& list) {
  Attributes attributes;
  for (const v1::Network::Attribute& proto : list) {
    ASSIGN_OR_RETURN(AttributeValue value, ReadValue(proto));
    attributes.Set(proto.name(), std::move(value));
  }
  return attributes;
}

// Each is looked up where it is called, so that the error says where.
absl::StatusOr<const Operation*> OperationAt(int place, const v1::Network& proto) {
  if (place < 0 || place >= proto.operations_size()) {
    return Refused("operation ", place, " of ", proto.operations_size());
  }
  const v1::Network::Operation& wanted = proto.operations(place);
  RETURN_IF_ERROR(CheckText("name", wanted.name()));
  const absl::StatusOr<const Operation*> found = FindOperation(absl::CEscape(wanted.name()));
  if (!found.ok()) return absl::InvalidArgumentError(found.status().message());
  if ((*found)->version() == wanted.version()) return *found;
  return Refused(wanted.name(), ": version ", wanted.version(), "; this program has version ",
                 (*found)->version());
}

// One form: its values again, in their order. Parameters and states have their paths for names.
class FormReader {
 public:
  FormReader(const v1::Network::Form& form, const v1::Network& network)
      : form_(form), network_(network) {}

  absl::StatusOr<BuiltLayer> Read() {
    RETURN_IF_ERROR(CheckText("label", form_.label()));
    RETURN_IF_ERROR(CheckText("function", form_.function()));
    if (form_.entries_size() > kMostEntries) {
      return Refused(form_.entries_size(), " entries; at most ", kMostEntries);
    }
    for (const v1::Network::Entry& entry : form_.entries()) RETURN_IF_ERROR(ReadEntry(entry));
    std::vector<ValueId> outputs;
    ASSIGN_OR_RETURN(outputs, Ids(form_.outputs()));
    ASSIGN_OR_RETURN(layer_.graph, writer_.Finish(std::move(outputs)));
    RETURN_IF_ERROR(CheckLayer(layer_));
    return std::move(layer_);
  }

 private:
  absl::Status ReadEntry(const v1::Network::Entry& entry) {
    switch (entry.kind_case()) {
      case v1::Network::Entry::kInput:
        return ReadInput(entry.input());
      case v1::Network::Entry::kParameter:
        return ReadParameter(entry.parameter());
      case v1::Network::Entry::kState:
        return ReadState(entry.state());
      case v1::Network::Entry::kCall:
        return ReadCall(entry.call());
      case v1::Network::Entry::KIND_NOT_SET:
        break;
    }
    return Refused("value ", values_, " comes from nowhere");
  }

  absl::Status ReadInput(const v1::Network::LayerInput& proto) {
    ASSIGN_OR_RETURN(ValueType type, ReadType(proto.type()));
    writer_.Input(std::move(type), !proto.constant());
    ++values_;
    return absl::OkStatus();
  }

  absl::Status ReadParameter(const v1::Network::Parameter& proto) {
    ASSIGN_OR_RETURN(const Element element, ReadEnum<Element>("element", proto.element()));
    if (element != Element::kActivation && element != Element::kFloat32) {
      return Refused(proto.path(), ": must be read as activation or float32");
    }
    ASSIGN_OR_RETURN(const ValueType type, ReadType(element, Leading::kOne, proto.extents()));
    ParameterSpec parameter;
    parameter.name = proto.path();
    parameter.shape = type.shape;
    ASSIGN_OR_RETURN(parameter.init,
                     ReadEnum<ParameterSpec::Init>("initial value", proto.initial()));
    parameter.init_stddev = proto.initial_stddev();
    parameter.index = static_cast<int>(layer_.parameters.size());
    parameter.decay = proto.decay();
    parameter.trained = !proto.frozen();
    ASSIGN_OR_RETURN(parameter.part, ReadPart(proto.part()));
    if (parameter.part == ParameterSpec::Part::kBase && parameter.trained) {
      return Refused(proto.path(), ": is a base; must be frozen");
    }
    layer_.parameters.push_back(std::move(parameter));
    writer_.Parameter(element, type.shape, !proto.frozen());
    ++values_;
    return absl::OkStatus();
  }

  absl::Status ReadState(const v1::Network::State& proto) {
    ASSIGN_OR_RETURN(const ValueType type,
                     ReadType(Element::kFloat32, Leading::kOne, proto.extents()));
    layer_.states.push_back({proto.path(), type.shape, proto.initial()});
    writer_.State(type.shape);
    ++values_;
    return absl::OkStatus();
  }

  absl::Status ReadCall(const v1::Network::Call& proto) {
    ASSIGN_OR_RETURN(const Operation* const operation, OperationAt(proto.operation(), network_));
    const std::string name(operation->name());
    ASSIGN_OR_RETURN(Attributes attributes, Annotate(ReadAttributes(proto.attributes()), name));
    ASSIGN_OR_RETURN(std::vector<ValueId> inputs, Annotate(Ids(proto.inputs()), name));
    const std::vector<ValueId> made = writer_.Emit(name, std::move(attributes), std::move(inputs));
    RETURN_IF_ERROR(writer_.status());
    if (made.size() != static_cast<size_t>(proto.outputs_size())) {
      return Refused(name, ": gives ", proto.outputs_size(), " values here and ", made.size(),
                     " by its rule");
    }
    for (size_t i = 0; i < made.size(); ++i) {
      ASSIGN_OR_RETURN(const ValueType type,
                       Annotate(ReadType(proto.outputs(static_cast<int>(i))), name));
      if (type == writer_.type(made[i])) continue;
      return Refused(name, ": gives ", FormatType(type), " here and ",
                     FormatType(writer_.type(made[i])), " by its rule");
    }
    values_ += static_cast<int>(made.size());
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueId>> Ids(
      const google::protobuf::RepeatedField<int32_t>& list) const {
    std::vector<ValueId> ids;
    for (const int32_t id : list) {
      if (id < 0 || id >= values_) return Refused("reads value ", id, " of ", values_);
      ids.emplace_back(id);
    }
    return ids;
  }

  const v1::Network::Form& form_;
  const v1::Network& network_;
  LayerWriter writer_;
  BuiltLayer layer_;
  int values_ = 0;
};

class Reader {
 public:
  explicit Reader(const v1::Network& proto) : proto_(proto) {}

  absl::StatusOr<Network> Read() {
    RETURN_IF_ERROR(CheckAllKnown(proto_, "network"));
    RETURN_IF_ERROR(ReadInputs());
    if (proto_.layers_size() < 1 || proto_.layers_size() > kMaxLayers) {
      return Refused(proto_.layers_size(), " layers; must be 1 to ", kMaxLayers);
    }
    for (int i = 0; i < proto_.layers_size(); ++i) {
      RETURN_IF_ERROR(ReadLayer(i));
    }
    ASSIGN_OR_RETURN(Network network, ReadEnd());
    if (ToProto(network).sha256() == proto_.sha256()) return network;
    return Refused("its digest is ", absl::CEscape(proto_.sha256().substr(0, 64)),
                   ", and that of what was read ", ToProto(network).sha256());
  }

 private:
  absl::Status ReadInputs() {
    if (proto_.inputs_size() < 1 || proto_.inputs_size() > kMostInputs) {
      return Refused(proto_.inputs_size(), " inputs; must be 1 to ", kMostInputs);
    }
    std::map<std::string, int> names;
    for (const v1::Network::Input& input : proto_.inputs()) {
      RETURN_IF_ERROR(CheckText("name", input.name()));
      ASSIGN_OR_RETURN(ValueType type, ReadType(input.type()));
      const bool ids = type.element == Element::kIds;
      const bool known = ids || type.element == Element::kActivation ||
                         type.element == Element::kFloat32;  // weights are not rounded
      if (!known || type.leading != Leading::kSamples || ids != (input.classes() > 0) ||
          input.classes() > std::numeric_limits<int32_t>::max()) {
        return Refused("input ", input.name(), ": ", FormatType(type), " with ", input.classes(),
                       " classes; ids have some, and numbers none");
      }
      if (!names.try_emplace(input.name()).second) return Refused("two inputs ", input.name());
      builder_.Input(input.name(), std::move(type), input.classes());
    }
    return absl::OkStatus();
  }

  std::string PathOf(int layer) const {
    const int form = proto_.layers(layer).form();
    const bool there = form >= 0 && form < proto_.forms_size();
    return absl::StrCat(
        "layer ", layer,
        there ? absl::StrCat(" (", proto_.forms(form).label().substr(0, 80), ")") : "");
  }

  absl::Status ReadLayer(int index) {
    const v1::Network::Layer& proto = proto_.layers(index);
    if (proto.form() < 0 || proto.form() >= proto_.forms_size()) {
      return Refused(PathOf(index), ": form ", proto.form(), " of ", proto_.forms_size());
    }
    const v1::Network::Form& form = proto_.forms(proto.form());
    auto known = forms_.find(proto.form());
    if (known == forms_.end()) {
      ASSIGN_OR_RETURN(BuiltLayer read, Annotate(FormReader(form, proto_).Read(), PathOf(index)));
      known = forms_.emplace(proto.form(), std::move(read)).first;
    }
    BuiltLayer layer = known->second;
    for (ParameterSpec& parameter : layer.parameters) {
      parameter.name = NamePrefix(index) + parameter.name;
    }
    for (StateSpec& state : layer.states) state.name = NamePrefix(index) + state.name;
    std::vector<WireId> inputs;
    for (const int32_t id : proto.inputs()) {
      ASSIGN_OR_RETURN(const WireId wire, Annotate(Wire(id), PathOf(index)));
      inputs.push_back(wire);
    }
    const NetworkBuilder::Naming naming{form.label(), form.function(), PathOf(index)};
    return builder_.Add(naming, inputs, std::move(layer)).status();
  }

  absl::StatusOr<WireId> Wire(int32_t id) const {
    if (id >= 0 && static_cast<size_t>(id) < builder_.wires()) return WireId(id);
    return Refused("reads wire ", id, " of ", builder_.wires());
  }

  absl::StatusOr<Network> ReadEnd() {
    const v1::Network::Objective& proto = proto_.objective();
    ASSIGN_OR_RETURN(const WireId output, Annotate(Wire(proto.output()), "objective"));
    ASSIGN_OR_RETURN(const WireId targets, Annotate(Wire(proto.targets()), "objective"));
    if (output.value < proto_.inputs_size() || targets.value >= proto_.inputs_size()) {
      return Refused("objective: compares wire ", output.value, " with wire ", targets.value,
                     "; must be what a layer gives, with an input");
    }
    NetworkBuilder::Ends ends{.output = output, .targets = targets};
    if (proto.has_auxiliary()) {
      ASSIGN_OR_RETURN(ends.auxiliary, Annotate(Wire(proto.auxiliary()), "objective"));
      if (ends.auxiliary.value < proto_.inputs_size()) {
        return Refused("objective: its auxiliary output is wire ", proto.auxiliary(),
                       "; must be what a layer gives");
      }
      ends.auxiliary_weight = proto.auxiliary_weight();
    }
    ASSIGN_OR_RETURN(Network network, builder_.Finish(ends, "layers"));
    ASSIGN_OR_RETURN(network.precision, PrecisionFromProto(proto_.precision()));
    Objective& objective = network.objective;
    ASSIGN_OR_RETURN(const Operation* const loss,
                     Annotate(OperationAt(proto.operation(), proto_), "objective"));
    objective.operation = loss->name();
    ASSIGN_OR_RETURN(objective.attributes,
                     Annotate(ReadAttributes(proto.attributes()), "objective"));
    objective.target_type = network.wire(targets).type;
    ASSIGN_OR_RETURN(objective.target_type.element,
                     ReadEnum<Element>("element", proto.target_element()));
    const bool ids = objective.target_type.element == Element::kIds;
    if (ids != (network.wire(targets).type.element == Element::kIds)) {
      return Refused("objective: targets must be loaded as what they are");
    }
    if (proto.has_ignored()) objective.ignored = proto.ignored();
    if (proto.has_weights()) {
      if (proto.weights() < 0 || proto.weights() >= proto_.inputs_size()) {
        return Refused("objective: weights are wire ", proto.weights(), "; must be an input");
      }
      objective.weights = WireId(proto.weights());
    }
    objective.class_weights.assign(proto.class_weights().begin(), proto.class_weights().end());
    RETURN_IF_ERROR(FinishObjective("objective", {}, &network));
    RETURN_IF_ERROR(ReadTies(&network));
    return network;
  }

  absl::Status ReadTies(Network* network) const {
    if (proto_.tied_size() > kMaxTiedUses) {
      return Refused(proto_.tied_size(), " tied parameters; must be at most ", kMaxTiedUses);
    }
    for (const v1::Network::Tie& tie : proto_.tied()) {
      RETURN_IF_ERROR(CheckText("tied parameter", tie.parameter()));
      RETURN_IF_ERROR(CheckText("tied parameter", tie.owner()));
      RETURN_IF_ERROR(TieParameter(tie.parameter(), tie.owner(), "tied", network));
    }
    return absl::OkStatus();
  }

  const v1::Network& proto_;
  NetworkBuilder builder_{0, {}};
  std::map<int, BuiltLayer> forms_;  // that have been read
};

}  // namespace

absl::StatusOr<Network> NetworkFromProto(const v1::Network& proto) {
  absl::StatusOr<Network> network = Reader(proto).Read();
  if (network.ok()) return network;
  return absl::InvalidArgumentError(
      absl::StrCat("network: ", network.status().message(),
                   "; coordinator and stage servers must be of one version: upgrade the older"));
}

}  // namespace stagecoach
