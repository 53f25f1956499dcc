// ToProto of a network.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/errors/check.h"
#include "base/files/hash.h"
#include "network/layer_builder.h"
#include "network/passes/tied.h"
#include "operations/catalogue.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

using Form = v1::Network::Form;

// Values stand in one order on both sides; 0 of a message is none.
static_assert(static_cast<int>(Element::kIds) + 1 == v1::Network::ELEMENT_IDS);
static_assert(static_cast<int>(Length::kTarget) == v1::Network::LENGTH_TARGET);
static_assert(static_cast<int>(ParameterSpec::Init::kNormal) + 1 == v1::Network::INITIAL_NORMAL);
static_assert(static_cast<int>(ParameterSpec::Part::kAdapter) == v1::Network::PART_ADAPTER);
v1::Network::Element ToProto(Element element) {
  return static_cast<v1::Network::Element>(static_cast<int>(element) + 1);
}
v1::Network::Initial ToProto(ParameterSpec::Init init) {
  return static_cast<v1::Network::Initial>(static_cast<int>(init) + 1);
}

void WriteExtents(const Shape& shape, google::protobuf::RepeatedField<int64_t>* extents) {
  extents->Add(shape.extents().begin(), shape.extents().end());
}

void WriteType(const ValueType& type, v1::Network::ValueType* proto) {
  proto->set_element(ToProto(type.element));
  proto->set_once(type.leading == Leading::kOne);
  WriteExtents(type.shape, proto->mutable_extents());
  if (!type.shape.has_lengths()) return;
  for (int i = 0; i < type.shape.rank(); ++i) {
    proto->add_lengths(static_cast<v1::Network::Length>(type.shape.extent(i).length));
  }
}

// An overload for each type of value.
void WriteValue(bool flag, v1::Network::Attribute* proto) { proto->set_flag(flag); }
void WriteValue(int64_t count, v1::Network::Attribute* proto) { proto->set_count(count); }
void WriteValue(double number, v1::Network::Attribute* proto) { proto->set_number(number); }
void WriteValue(const std::string& text, v1::Network::Attribute* proto) { proto->set_text(text); }
void WriteValue(const std::vector<int64_t>& counts, v1::Network::Attribute* proto) {
  proto->mutable_counts()->mutable_values()->Add(counts.begin(), counts.end());
}
void WriteValue(const std::vector<double>& numbers, v1::Network::Attribute* proto) {
  proto->mutable_numbers()->mutable_values()->Add(numbers.begin(), numbers.end());
}
void WriteValue(const std::vector<std::string>& texts, v1::Network::Attribute* proto) {
  proto->mutable_texts()->mutable_values()->Add(texts.begin(), texts.end());
}

void WriteAttributes(const Attributes& attributes,
                     google::protobuf::RepeatedPtrField<v1::Network::Attribute>* list) {
  for (const Attributes::Entry& entry : attributes.entries()) {
    v1::Network::Attribute* const proto = list->Add();
    proto->set_name(entry.name);
    std::visit([proto](const auto& value) { WriteValue(value, proto); }, entry.value);
  }
}

// A name without what says which layer it is in.
std::string PathOf(const std::string& name, const NetworkLayer& layer) {
  const std::string prefix = NamePrefix(layer.index);
  CHECK(name.starts_with(prefix)) << name << " in layer " << layer.index;
  return name.substr(prefix.size());
}

// The same but for where they stand?
bool AreOne(const NetworkLayer& a, const NetworkLayer& b) {
  if (a.graph != b.graph && *a.graph != *b.graph) return false;
  if (a.label != b.label || a.function != b.function) return false;
  const auto equal = [&](auto of_a, const auto& of_b) {
    of_a.name = NamePrefix(b.index) + PathOf(of_a.name, a);
    return of_a == of_b;
  };
  return std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), equal) &&
         std::equal(a.states.begin(), a.states.end(), b.states.begin(), b.states.end(), equal);
}

class Writer {
 public:
  explicit Writer(const Network& network) : network_(network) {}

  v1::Network Write() {
    for (size_t i = 0; i < network_.inputs.size(); ++i) {
      v1::Network::Input* const input = proto_.add_inputs();
      input->set_name(network_.inputs[i].name);
      input->set_classes(network_.inputs[i].classes);
      WriteType(network_.wires[i].type, input->mutable_type());
    }
    for (const NetworkLayer& layer : network_.layers) {
      v1::Network::Layer* const proto = proto_.add_layers();
      proto->set_form(FormOf(layer));
      for (const WireId id : layer.inputs) proto->add_inputs(id.value);
    }
    WriteObjective(network_.objective, proto_.mutable_objective());
    for (const TiedParameter& tied : TiedParameters(network_)) {
      for (const ParameterUse& user : tied.users) {
        v1::Network::Tie* const tie = proto_.add_tied();
        tie->set_parameter(SpecOf(network_, user).name);
        tie->set_owner(SpecOf(network_, tied.owner).name);
      }
    }
    proto_.set_precision(ToProto(network_.precision));
    proto_.set_sha256(Digest());
    return std::move(proto_);
  }

 private:
  int OperationOf(const std::string& name) {
    const auto [found, is_new] = operations_.try_emplace(name, proto_.operations_size());
    if (is_new) {
      v1::Network::Operation* const operation = proto_.add_operations();
      operation->set_name(name);
      operation->set_version(OperationNamed(name).version());
    }
    return found->second;
  }

  int FormOf(const NetworkLayer& layer) {
    std::vector<int>& alike = alike_[{layer.label, layer.function}];
    for (const int form : alike) {
      if (AreOne(*first_of_[static_cast<size_t>(form)], layer)) return form;
    }
    WriteForm(layer, proto_.add_forms());
    first_of_.push_back(&layer);
    alike.push_back(proto_.forms_size() - 1);
    return alike.back();
  }

  void WriteForm(const NetworkLayer& layer, Form* form) {
    form->set_label(layer.label);
    form->set_function(layer.function);
    const LayerGraph& graph = *layer.graph;
    size_t call = 0;
    for (size_t i = 0; i < graph.values.size();) {
      const Value& value = graph.values[i];
      v1::Network::Entry* const entry = form->add_entries();
      if (value.origin == Origin::kCall) {
        CHECK(call < graph.calls.size() &&
              graph.calls[call].outputs[0].value == static_cast<int32_t>(i))
            << "values in the order of calls, layer " << layer.index;
        WriteCall(graph, graph.calls[call], entry->mutable_call());
        i += graph.calls[call++].outputs.size();
        continue;
      }
      WriteOwn(layer, value, entry);
      ++i;
    }
    CHECK_EQ(call, graph.calls.size()) << "calls of layer " << layer.index;
    for (const ValueId id : graph.outputs) form->add_outputs(id.value);
  }

  static void WriteOwn(const NetworkLayer& layer, const Value& value, v1::Network::Entry* entry) {
    const auto index = static_cast<size_t>(value.index);
    if (value.origin == Origin::kInput) {
      WriteType(value.type, entry->mutable_input()->mutable_type());
      entry->mutable_input()->set_constant(value.constant);
    } else if (value.origin == Origin::kParameter) {
      WriteParameter(layer, layer.parameters[index], value, entry->mutable_parameter());
    } else {
      CHECK(value.origin == Origin::kState) << "a value of layer " << layer.index;
      const StateSpec& state = layer.states[index];
      entry->mutable_state()->set_path(PathOf(state.name, layer));
      entry->mutable_state()->set_initial(state.initial);
      WriteExtents(state.shape, entry->mutable_state()->mutable_extents());
    }
  }

  static void WriteParameter(const NetworkLayer& layer, const ParameterSpec& parameter,
                             const Value& value, v1::Network::Parameter* proto) {
    CHECK(value.constant == !parameter.trained && value.type.shape == parameter.shape)
        << parameter.name;
    proto->set_path(PathOf(parameter.name, layer));
    proto->set_element(ToProto(value.type.element));
    WriteExtents(parameter.shape, proto->mutable_extents());
    proto->set_initial(ToProto(parameter.init));
    proto->set_initial_stddev(parameter.init_stddev);
    proto->set_decay(parameter.decay);
    proto->set_frozen(!parameter.trained);
    proto->set_part(static_cast<v1::Network::Part>(parameter.part));
  }

  void WriteCall(const LayerGraph& graph, const Call& call, v1::Network::Call* proto) {
    proto->set_operation(OperationOf(call.operation));
    WriteAttributes(call.attributes, proto->mutable_attributes());
    for (const ValueId id : call.inputs) proto->add_inputs(id.value);
    for (const ValueId id : call.outputs) WriteType(graph.value(id).type, proto->add_outputs());
  }

  void WriteObjective(const Objective& objective, v1::Network::Objective* proto) {
    proto->set_operation(OperationOf(objective.operation));
    WriteAttributes(objective.attributes, proto->mutable_attributes());
    proto->set_output(objective.output.value);
    proto->set_targets(objective.targets.value);
    proto->set_target_element(ToProto(objective.target_type.element));
    if (objective.auxiliary.valid()) {
      proto->set_auxiliary(objective.auxiliary.value);
      proto->set_auxiliary_weight(objective.auxiliary_weight);
    }
    if (objective.ignored.has_value()) proto->set_ignored(*objective.ignored);
    if (objective.weights.valid()) proto->set_weights(objective.weights.value);
    proto->mutable_class_weights()->Add(objective.class_weights.begin(),
                                        objective.class_weights.end());
  }

  // Of all that was written, and of the lists that a stage derives from it: another version may
  // derive others.
  std::string Digest() const {
    std::string text = proto_.SerializeAsString();  // has no maps, so it is the same each time
    for (const NetworkLayer* layer : first_of_) text += FormatLists(*layer->lists);
    return Sha256Hex(text);
  }

  const Network& network_;
  v1::Network proto_;
  std::map<std::string, int> operations_;
  std::vector<const NetworkLayer*> first_of_;                              // by form
  std::map<std::pair<std::string, std::string>, std::vector<int>> alike_;  // by label and function
};

}  // namespace

v1::Network ToProto(const Network& network) { return Writer(network).Write(); }

}  // namespace stagecoach
