#include "services/common/convert/convert_layer.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace stagecoach {
namespace {

constexpr int kMaxNesting = 8;  // residuals within residuals; each level is a stack frame

struct ProtoLayerWriter {
  v1::Layer* proto;
  void operator()(const EmbeddingSpec& spec) const {
    proto->mutable_embedding()->set_dropout(spec.dropout);
  }
  void operator()(const LayerNormSpec&) const { proto->mutable_layer_norm(); }
  void operator()(const AttentionSpec& spec) const {
    proto->mutable_attention()->set_heads(spec.heads);
    proto->mutable_attention()->set_dropout(spec.dropout);
  }
  void operator()(const MlpSpec& spec) const { proto->mutable_mlp()->set_hidden(spec.hidden); }
  void operator()(const LinearSpec& spec) const {
    proto->mutable_linear()->set_out(spec.out);
    proto->mutable_linear()->set_no_bias(!spec.bias);
  }
  void operator()(const GeluSpec&) const { proto->mutable_gelu(); }
  void operator()(const DropoutSpec& spec) const { proto->mutable_dropout()->set_rate(spec.rate); }
  void operator()(const ResidualSpec& spec) const {
    v1::ResidualLayer& target = *proto->mutable_residual();
    for (const LayerSpec& layer : spec.layers) {
      std::visit(ProtoLayerWriter{target.add_layers()}, layer.kind);
    }
  }
};

using ProtoLayers = google::protobuf::RepeatedPtrField<v1::Layer>;

absl::StatusOr<std::vector<LayerSpec>> LayersFromProto(const ProtoLayers& protos,
                                                       const std::string& path, int nesting);

absl::StatusOr<LayerSpec> LayerFromProto(const v1::Layer& proto, const std::string& path,
                                         int nesting) {
  switch (proto.kind_case()) {
    case v1::Layer::kEmbedding:
      return LayerSpec{EmbeddingSpec{proto.embedding().dropout()}};
    case v1::Layer::kLayerNorm:
      return LayerSpec{LayerNormSpec{}};
    case v1::Layer::kAttention:
      return LayerSpec{AttentionSpec{proto.attention().heads(), proto.attention().dropout()}};
    case v1::Layer::kMlp:
      return LayerSpec{MlpSpec{proto.mlp().hidden()}};
    case v1::Layer::kLinear:
      return LayerSpec{LinearSpec{proto.linear().out(), !proto.linear().no_bias()}};
    case v1::Layer::kGelu:
      return LayerSpec{GeluSpec{}};
    case v1::Layer::kDropout:
      return LayerSpec{DropoutSpec{proto.dropout().rate()}};
    case v1::Layer::kResidual: {
      if (nesting >= kMaxNesting) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": nested deeper than ", kMaxNesting, " residuals"));
      }
      ResidualSpec spec;
      ASSIGN_OR_RETURN(spec.layers, LayersFromProto(proto.residual().layers(),
                                                    absl::StrCat(path, ".residual"), nesting + 1));
      return LayerSpec{std::move(spec)};
    }
    case v1::Layer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": not set, want embedding, layer_norm, attention, mlp, linear, gelu, dropout or residual"));
}

absl::StatusOr<std::vector<LayerSpec>> LayersFromProto(const ProtoLayers& protos,
                                                       const std::string& path, int nesting) {
  std::vector<LayerSpec> layers;
  layers.reserve(protos.size());
  for (int i = 0; i < protos.size(); ++i) {
    absl::StatusOr<LayerSpec> layer =
        LayerFromProto(protos[i], absl::StrCat(path, ".layers[", i, "]"), nesting);
    if (!layer.ok()) return layer.status();
    layers.push_back(*std::move(layer));
  }
  return layers;
}

}  // namespace

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
      for (const LayerSpec& layer : list.layers) {
        std::visit(ProtoLayerWriter{target.add_layers()}, layer.kind);
      }
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
      ASSIGN_OR_RETURN(spec.layers,
                       LayersFromProto(proto.sequence().layers(), "model.sequence", 0));
      return ModelSpec{std::move(spec)};
    }
    case v1::Model::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("model: not set, want gpt or sequence");
}

}  // namespace stagecoach
