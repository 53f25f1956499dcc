#include "network/zoo/layer_chain.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/limits.h"
#include "network/network_builder.h"
#include "network/passes/tied.h"

namespace stagecoach {
namespace {

// A list of layers, and where it stands in the job.
struct Listed {
  const std::vector<LayerSpec>& layers;
  std::string path;  // "model.sequence.layers"

  std::string PathOf(size_t i) const { return absl::StrCat(path, "[", i, "]"); }
  absl::Status CheckCount() const {
    return CheckInteger(path + " (count)", static_cast<int64_t>(layers.size()), 1, kMaxLayers);
  }
};

// `of`: what the logits are of; `first`: what would make their rank right.
absl::Status CheckLogits(const ValueType& gives, const ValueType& wanted, const Listed& listed,
                         const char* of, const char* first) {
  if (gives == wanted) return absl::OkStatus();
  const bool width = gives.shape.rank() == wanted.shape.rank();
  return FieldError(
      listed.PathOf(listed.layers.size() - 1),
      absl::StrCat("gives ",
                   width ? absl::StrCat("width ", gives.shape.back()) : FormatType(gives)),
      absl::StrCat("the last layer must give logits ", width ? of : FormatType(wanted),
                   ": end with ", width ? "" : first, "linear: {out: ", wanted.shape.back(), "}"));
}

// One by one behind x. documents: read by those with attention, if it is valid.
absl::StatusOr<WireId> AddEach(const Listed& listed, WireId x, NetworkBuilder& builder,
                               WireId documents = {}) {
  for (size_t i = 0; i < listed.layers.size(); ++i) {
    const LayerSpec& layer = listed.layers[i];
    const bool attends = HasLayer(layer, AttentionSpec::kKind);
    ASSIGN_OR_RETURN(x, builder.Add(layer, listed.PathOf(i), x, attends ? documents : WireId()));
  }
  return x;
}

absl::Status CheckHasAttention(const Listed& listed, const std::string& path) {
  for (const LayerSpec& layer : listed.layers) {
    if (HasLayer(layer, AttentionSpec::kKind)) return absl::OkStatus();
  }
  return FieldError(path + ".documents", "true", "no layer has attention: leave it out");
}

// Either kind writes its matrix as its first parameter.
absl::Status TieHead(const std::vector<LayerSpec>& layers, const std::string& path,
                     Network* network) {
  if (layers.front().kind != EmbeddingSpec::kKind || layers.back().kind != LinearSpec::kKind) {
    return FieldError(path, "true",
                      "needs an embedding as the first layer and a linear as the last");
  }
  return TieParameter(network->layers.back().parameters.front().name,
                      network->layers.front().parameters.front().name, path, network);
}

}  // namespace

absl::StatusOr<Network> ChainOnTokens(const TokenShape& shape, const std::vector<LayerSpec>& layers,
                                      const std::string& path) {
  const Listed listed{layers, path + ".layers"};
  RETURN_IF_ERROR(listed.CheckCount());
  NetworkBuilder builder(BranchStddev(layers),
                         {.vocabulary = shape.vocabulary, .width = shape.width});
  const ValueType ids{Element::kIds, Leading::kSamples, {shape.context}};
  const WireId tokens = builder.Input("tokens", ids, shape.vocabulary);
  const WireId targets = builder.Input("targets", ids, shape.vocabulary);
  WireId documents;
  if (shape.documents) {
    RETURN_IF_ERROR(CheckHasAttention(listed, path));
    documents = builder.Input("document_starts", ids, shape.context);
  }
  ASSIGN_OR_RETURN(const WireId x, AddEach(listed, tokens, builder, documents));
  RETURN_IF_ERROR(CheckLogits(builder.type(x), ActivationType({shape.context, shape.vocabulary}),
                              listed, "of the vocabulary",
                              "layers that keep [context, width], without flatten, and "));
  ASSIGN_OR_RETURN(Network network, builder.Finish({.output = x, .targets = targets}, path));
  if (shape.tied) RETURN_IF_ERROR(TieHead(layers, path + ".tied_embeddings", &network));
  return network;
}

absl::Status CheckImageShape(const ImageShape& shape, const std::string& path) {
  const std::string field = path + ".image";
  if (shape.image.size() != 3) {
    return FieldError(field, absl::StrCat(shape.image.size(), " numbers"),
                      "give [height, width, channels]");
  }
  for (size_t i = 0; i < shape.image.size(); ++i) {
    RETURN_IF_ERROR(
        CheckInteger(absl::StrCat(field, "[", i, "]"), shape.image[i], 1, kMaxImageSide));
  }
  const ValueType image = ActivationType(Shape(shape.image));
  if (image.shape.elements() > kMaxImageNumbers) {
    return FieldError(field, FormatType(image),
                      absl::StrCat("has ", image.shape.elements(), " numbers a sample; at most ",
                                   kMaxImageNumbers));
  }
  return CheckInteger(path + ".classes", shape.classes, 2, kMaxVocabulary);
}

absl::StatusOr<Network> ChainOnImages(const ImageShape& shape, const std::vector<LayerSpec>& layers,
                                      const std::string& path) {
  const Listed listed{layers, path + ".layers"};
  RETURN_IF_ERROR(listed.CheckCount());
  NetworkBuilder builder(BranchStddev(layers), {.images = true});
  const ValueType image = ActivationType(Shape(shape.image));
  const WireId images = builder.Input("images", image, 0);
  const WireId labels =
      builder.Input("labels", {Element::kIds, Leading::kSamples, {}}, shape.classes);
  ASSIGN_OR_RETURN(const WireId x, AddEach(listed, images, builder));
  // What gives images again is compared with those that went in, not with classes
  // (network/objective_kind.h).
  if (builder.type(x) != image) {
    RETURN_IF_ERROR(CheckLogits(builder.type(x), ActivationType({shape.classes}), listed,
                                "of the classes", "flatten or global_pool, and "));
  }
  return builder.Finish({.output = x, .targets = labels}, path);
}

}  // namespace stagecoach
