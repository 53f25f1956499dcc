#include "services/common/convert/convert_layer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "google/protobuf/descriptor.h"
#include "network/layer_kinds.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "services/common/convert/convert_fields.h"

namespace stagecoach {
namespace {

constexpr int kMaxNesting = 8;  // layers within layers; each level is a stack frame

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;

// A layer and a network are each a message whose one choice `kind` has a message of fields for every kind.
const OneofDescriptor& LayerKindChoice(const Descriptor& message) {
  const OneofDescriptor* choice = message.FindOneofByName("kind");
  CHECK(choice != nullptr) << message.full_name() << " has no kind";
  return *choice;
}

// The field of the kind that is set; none: null.
const FieldDescriptor* KindOf(const Message& message) {
  return message.GetReflection()->GetOneofFieldDescriptor(
      message, &LayerKindChoice(*message.GetDescriptor()));
}

Message* MutableKind(const std::string& kind, Message* message) {
  const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(kind);
  CHECK(field != nullptr) << message->GetDescriptor()->full_name() << " has no kind " << kind;
  return message->GetReflection()->MutableMessage(message, field);
}

absl::Status NoKind(const std::string& path, const Descriptor& message) {
  std::string names;
  const OneofDescriptor& choice = LayerKindChoice(message);
  const int count = choice.field_count();
  for (int i = 0; i < count; ++i) {
    const char* separator = i == 0 ? "" : i + 1 < count ? ", " : " or ";
    absl::StrAppend(&names, separator, choice.field(i)->name());
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": not set, want ", names));
}

// The list of layers of a message that has one.
const FieldDescriptor* ListOf(const Message& message) {
  const FieldDescriptor* list = message.GetDescriptor()->FindFieldByName(kInnerLayers);
  CHECK(list != nullptr && list->message_type() == v1::Layer::descriptor())
      << message.GetDescriptor()->full_name() << " has no list of layers";
  return list;
}

void AddLayers(const std::vector<LayerSpec>& layers, Message* message) {
  for (const LayerSpec& layer : layers) {
    Message* added = message->GetReflection()->AddMessage(message, ListOf(*message));
    LayerToProto(layer, google::protobuf::DynamicCastToGenerated<v1::Layer>(added));
  }
}

absl::StatusOr<LayerSpec> LayerFrom(const v1::Layer& proto, const std::string& path, int nesting);

absl::StatusOr<std::vector<LayerSpec>> LayersFrom(const Message& message, const std::string& path,
                                                  int nesting) {
  const FieldDescriptor* list = ListOf(message);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<LayerSpec> layers;
  const int count = reflection.FieldSize(message, list);
  layers.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto* proto = google::protobuf::DynamicCastToGenerated<v1::Layer>(
        &reflection.GetRepeatedMessage(message, list, i));
    ASSIGN_OR_RETURN(
        LayerSpec layer,
        LayerFrom(*proto, absl::StrCat(path, ".", kInnerLayers, "[", i, "]"), nesting));
    layers.push_back(std::move(layer));
  }
  return layers;
}

absl::StatusOr<LayerSpec> LayerFrom(const v1::Layer& proto, const std::string& path, int nesting) {
  const google::protobuf::Reflection& reflection = *proto.GetReflection();
  const FieldDescriptor* field = KindOf(proto);
  if (field == nullptr) return NoKind(path, *v1::Layer::descriptor());
  ASSIGN_OR_RETURN(const LayerKind* kind, FindLayerKind(field->name()));
  const Message& message = reflection.GetMessage(proto, field);
  LayerSpec layer;
  layer.kind = field->name();
  layer.attributes = FieldsOf(message, kind->Defaults());
  if (!kind->HasLayers()) return layer;
  if (nesting >= kMaxNesting) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": nested deeper than ", kMaxNesting, " ", layer.kind, "s"));
  }
  ASSIGN_OR_RETURN(layer.layers,
                   LayersFrom(message, absl::StrCat(path, ".", layer.kind), nesting + 1));
  return layer;
}

}  // namespace

void LayerToProto(const LayerSpec& layer, v1::Layer* proto) {
  Message* message = MutableKind(layer.kind, proto);
  SetFields(layer.attributes, message);
  AddLayers(layer.layers, message);
}

absl::StatusOr<LayerSpec> LayerFromProto(const v1::Layer& proto, const std::string& path) {
  return LayerFrom(proto, path, 0);
}

v1::Model ModelToProto(const ModelSpec& spec) {
  v1::Model proto;
  Message* message = MutableKind(spec.kind, &proto);
  SetFields(spec.attributes, message);
  AddLayers(spec.layers, message);
  if (!spec.objective.kind.empty()) {
    SetFields(spec.objective.attributes,
              MutableKind(spec.objective.kind, proto.mutable_objective()));
  }
  return proto;
}

namespace {

absl::StatusOr<KindSpec> ObjectiveFrom(const v1::Objective& proto) {
  const FieldDescriptor* field = KindOf(proto);
  if (field == nullptr) return NoKind("model.objective", *v1::Objective::descriptor());
  ASSIGN_OR_RETURN(const ObjectiveKind* kind, FindObjectiveKind(field->name()));
  KindSpec spec;
  spec.kind = field->name();
  spec.attributes = FieldsOf(proto.GetReflection()->GetMessage(proto, field), kind->Defaults());
  return spec;
}

}  // namespace

absl::StatusOr<ModelSpec> ModelFromProto(const v1::Model& proto) {
  const google::protobuf::Reflection& reflection = *proto.GetReflection();
  const FieldDescriptor* field = KindOf(proto);
  if (field == nullptr) return NoKind("model", *v1::Model::descriptor());
  ASSIGN_OR_RETURN(const NetworkKind* kind, FindNetworkKind(field->name()));
  const Message& message = reflection.GetMessage(proto, field);
  ModelSpec spec;
  spec.kind = field->name();
  spec.attributes = FieldsOf(message, kind->Defaults());
  if (proto.has_objective()) {
    ASSIGN_OR_RETURN(spec.objective, ObjectiveFrom(proto.objective()));
  }
  if (!kind->HasLayers()) return spec;
  ASSIGN_OR_RETURN(spec.layers, LayersFrom(message, absl::StrCat("model.", spec.kind), 0));
  return spec;
}

}  // namespace stagecoach
