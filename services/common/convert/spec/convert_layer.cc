#include "services/common/convert/spec/convert_layer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"
#include "network/layer_kinds.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "services/common/convert/spec/convert_kind.h"

namespace stagecoach {
namespace {

constexpr int kMaxNesting = 8;  // layers within layers; each level is a stack frame

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The list of layers of that name, of a message that has one.
const FieldDescriptor* ListOf(const Message& message, const char* name) {
  const FieldDescriptor* list = message.GetDescriptor()->FindFieldByName(name);
  CHECK(list != nullptr && list->message_type() == v1::Layer::descriptor())
      << message.GetDescriptor()->full_name() << " has no list of layers " << name;
  return list;
}

void AddLayers(const std::vector<LayerSpec>& layers, const char* name, Message* message) {
  for (const LayerSpec& layer : layers) {
    v1::Layer added;
    LayerToProto(layer, &added);
    message->GetReflection()
        ->GetMutableRepeatedFieldRef<v1::Layer>(message, ListOf(*message, name))
        .Add(added);
  }
}

absl::StatusOr<LayerSpec> LayerFrom(const v1::Layer& proto, const std::string& path, int nesting);

absl::StatusOr<std::vector<LayerSpec>> LayersFrom(const Message& message, const char* name,
                                                  const std::string& path, int nesting) {
  std::vector<LayerSpec> layers;
  for (const v1::Layer& proto :
       message.GetReflection()->GetRepeatedFieldRef<v1::Layer>(message, ListOf(message, name))) {
    const std::string place = absl::StrCat(path, ".", name, "[", layers.size(), "]");
    ASSIGN_OR_RETURN(layers.emplace_back(), LayerFrom(proto, place, nesting));
  }
  return layers;
}

absl::StatusOr<LayerSpec> LayerFrom(const v1::Layer& proto, const std::string& path, int nesting) {
  LayerSpec layer;
  ASSIGN_OR_RETURN(const LayerKind* kind, ReadKind(proto, path, FindLayerKind, &layer));
  if (!kind->HasLayers()) return layer;
  if (nesting >= kMaxNesting) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": nested deeper than ", kMaxNesting, " ", layer.kind, "s"));
  }
  ASSIGN_OR_RETURN(layer.layers, LayersFrom(*KindMember(proto), kInnerLayers,
                                            absl::StrCat(path, ".", layer.kind), nesting + 1));
  return layer;
}

}  // namespace

void LayerToProto(const LayerSpec& layer, v1::Layer* proto) {
  AddLayers(layer.layers, kInnerLayers, KindToProto(layer.kind, layer.attributes, proto));
}

absl::StatusOr<LayerSpec> LayerFromProto(const v1::Layer& proto, const std::string& path) {
  return LayerFrom(proto, path, 0);
}

v1::Model ModelToProto(const NetworkSpec& spec) {
  v1::Model proto;
  Message* const member = KindToProto(spec.kind, spec.attributes, &proto);
  AddLayers(spec.layers, kInnerLayers, member);
  AddLayers(spec.encoder, kEncoderLayers, member);
  if (!spec.objective.kind.empty()) KindToProto(spec.objective, proto.mutable_objective());
  return proto;
}

absl::StatusOr<NetworkSpec> ModelFromProto(const v1::Model& proto) {
  NetworkSpec spec;
  ASSIGN_OR_RETURN(const NetworkKind* kind, ReadKind(proto, "model", FindNetworkKind, &spec));
  if (proto.has_objective()) {
    RETURN_IF_ERROR(
        ReadKind(proto.objective(), "model.objective", FindObjectiveKind, &spec.objective)
            .status());
  }
  const std::string path = absl::StrCat("model.", spec.kind);
  if (kind->HasLayers()) {
    ASSIGN_OR_RETURN(spec.layers, LayersFrom(*KindMember(proto), kInnerLayers, path, 0));
  }
  if (kind->HasEncoder()) {
    ASSIGN_OR_RETURN(spec.encoder, LayersFrom(*KindMember(proto), kEncoderLayers, path, 0));
  }
  return spec;
}

}  // namespace stagecoach
