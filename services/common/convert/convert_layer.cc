#include "services/common/convert/convert_layer.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "google/protobuf/descriptor.h"
#include "network/layer_kinds.h"
#include "services/common/convert/convert_fields.h"

namespace stagecoach {
namespace {

constexpr int kMaxNesting = 8;  // layers within layers; each level is a stack frame

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;

const OneofDescriptor& KindChoice() { return *v1::Layer::descriptor()->FindOneofByName("kind"); }

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

absl::Status NoKind(const std::string& path) {
  std::string names;
  const int count = KindChoice().field_count();
  for (int i = 0; i < count; ++i) {
    const char* separator = i == 0 ? "" : i + 1 < count ? ", " : " or ";
    absl::StrAppend(&names, separator, KindChoice().field(i)->name());
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": not set, want ", names));
}

absl::StatusOr<LayerSpec> LayerFrom(const v1::Layer& proto, const std::string& path, int nesting) {
  const google::protobuf::Reflection& reflection = *proto.GetReflection();
  const FieldDescriptor* field = reflection.GetOneofFieldDescriptor(proto, &KindChoice());
  if (field == nullptr) return NoKind(path);
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
  const FieldDescriptor* field = v1::Layer::descriptor()->FindFieldByName(layer.kind);
  CHECK(field != nullptr) << "no message for layers of kind " << layer.kind;
  Message* message = proto->GetReflection()->MutableMessage(proto, field);
  SetFields(layer.attributes, message);
  AddLayers(layer.layers, message);
}

absl::StatusOr<LayerSpec> LayerFromProto(const v1::Layer& proto, const std::string& path) {
  return LayerFrom(proto, path, 0);
}

v1::Model ModelToProto(const ModelSpec& spec) {
  struct Visitor {
    v1::Model& proto;
    void operator()(const GptSpec& gpt) const {
      v1::GptModel& target = *proto.mutable_gpt();
      target.set_layers(gpt.layers);
      target.set_width(gpt.width);
      target.set_heads(gpt.heads);
      target.set_context(gpt.context);
      target.set_vocabulary(gpt.vocabulary);
      target.set_dropout(gpt.dropout);
    }
    void operator()(const LayerListSpec& list) const {
      v1::LayerListModel& target = *proto.mutable_sequence();
      target.set_width(list.width);
      target.set_context(list.context);
      target.set_vocabulary(list.vocabulary);
      AddLayers(list.layers, &target);
    }
  };
  v1::Model proto;
  std::visit(Visitor{proto}, spec);
  return proto;
}

absl::StatusOr<ModelSpec> ModelFromProto(const v1::Model& proto) {
  switch (proto.kind_case()) {
    case v1::Model::kGpt: {
      const v1::GptModel& gpt = proto.gpt();
      return ModelSpec{GptSpec{gpt.layers(), gpt.width(), gpt.heads(), gpt.context(),
                               gpt.vocabulary(), gpt.dropout()}};
    }
    case v1::Model::kSequence: {
      LayerListSpec spec;
      spec.width = proto.sequence().width();
      spec.context = proto.sequence().context();
      spec.vocabulary = proto.sequence().vocabulary();
      ASSIGN_OR_RETURN(spec.layers, LayersFrom(proto.sequence(), "model.sequence", 0));
      return ModelSpec{std::move(spec)};
    }
    case v1::Model::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("model: not set, want gpt or sequence");
}

}  // namespace stagecoach
