#include "network/zoo/layer_chain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "network/layers/attention.h"
#include "network/layers/cross_attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/limits.h"
#include "network/network_builder.h"
#include "network/passes/later_rows.h"
#include "network/passes/tied.h"
#include "network/zoo/pair_inputs.h"
#include "operations/attention/attention.h"

namespace stagecoach {
namespace {

// A list of layers, and where it stands in the job.
struct Listed {
  const std::vector<LayerSpec>& layers;
  std::string path;  // "model.sequence.layers"

  std::string PathOf(size_t i) const { return absl::StrCat(path, "[", i, "]"); }
  absl::Status CheckCount(int64_t most = kMaxLayers) const {
    return CheckInteger(path + " (count)", static_cast<int64_t>(layers.size()), 1, most);
  }
  bool Has(const char* kind) const {
    return std::any_of(layers.begin(), layers.end(),
                       [kind](const LayerSpec& layer) { return HasLayer(layer, kind); });
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

// Those of the values that the layer reads.
SideInputs<WireId> ReadBy(const LayerSpec& layer, SideInputs<WireId> sides) {
  if (!HasLayer(layer, AttentionSpec::kKind)) sides.documents = sides.length = WireId();
  if (!HasLayer(layer, CrossAttentionSpec::kKind)) sides.memory = sides.memory_length = WireId();
  return sides;
}

// One by one behind x.
absl::StatusOr<WireId> AddEach(const Listed& listed, WireId x, NetworkBuilder& builder,
                               const SideInputs<WireId>& sides = {}) {
  for (size_t i = 0; i < listed.layers.size(); ++i) {
    const LayerSpec& layer = listed.layers[i];
    ASSIGN_OR_RETURN(x, builder.Add(layer, listed.PathOf(i), x, ReadBy(layer, sides)));
  }
  return x;
}

// Ties the last layer, a linear, and a decoder's embedding to the first layer's. `layers`: those in
// front of the logits, all of them or the decoder's. Either kind writes its matrix as its first
// parameter.
absl::Status TieHead(const std::vector<LayerSpec>& layers, const std::string& path,
                     Network* network) {
  if (layers.front().kind != EmbeddingSpec::kKind || layers.back().kind != LinearSpec::kKind) {
    return FieldError(path, "true",
                      "needs an embedding as the first layer and a linear as the last");
  }
  const auto matrix = [network](size_t layer) {
    return network->layers[layer].parameters.front().name;
  };
  const size_t all = network->layers.size(), embedding = all - layers.size();
  if (embedding > 0) RETURN_IF_ERROR(TieParameter(matrix(embedding), matrix(0), path, network));
  return TieParameter(matrix(all - 1), matrix(0), path, network);
}

// What makes rows of a pair of others that may be padding; empty: nothing does. Causal attention
// looks back, and padding is behind.
std::string ReaderOfPadding(const Call& call) {
  if (call.operation == "cross_attention") return "";
  if (call.operation == "attention") {
    const bool full = FromAttributes<AttentionAttributes>(call.attributes).value().full;
    return full && call.inputs.size() == 1 ? "attention without a causal mask" : "";
  }
  // In training its statistics are of all rows.
  const bool apart = IsRowByRow(call.operation) && call.operation != "batch_norm";
  return apart ? "" : call.operation;
}

absl::Status CheckReadsNoPadding(const Listed& encoder, const Listed& decoder,
                                 const Network& network) {
  for (const NetworkLayer& layer : network.layers) {
    for (const Call& call : layer.graph->calls) {
      const std::string by = ReaderOfPadding(call);
      if (by.empty()) continue;
      const auto i = static_cast<size_t>(layer.index);
      const size_t before = encoder.layers.size();
      return FieldError(i < before ? encoder.PathOf(i) : decoder.PathOf(i - before), layer.label,
                        absl::StrCat("would read the padding behind a sentence, by ", by,
                                     ": take layers that make each row by itself, as layer_norm; "
                                     "attention in `layers` has its causal mask"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCrossing(const Listed& encoder, const Listed& decoder) {
  for (size_t i = 0; i < encoder.layers.size(); ++i) {
    if (!HasLayer(encoder.layers[i], CrossAttentionSpec::kKind)) continue;
    return FieldError(encoder.PathOf(i), LayerLabel(encoder.layers[i]),
                      "cross_attention stands in `layers`: an encoder has attention with causal: "
                      "false");
  }
  if (decoder.Has(CrossAttentionSpec::kKind)) return absl::OkStatus();
  return FieldError(encoder.path, absl::StrCat(encoder.layers.size(), " layers"),
                    "nothing reads their output: put a cross_attention into `layers`, or leave "
                    "the encoder out");
}

constexpr char kKeepRows[] = "layers that keep [context, width], without flatten, and ";

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
    if (!listed.Has(AttentionSpec::kKind)) {
      return FieldError(path + ".documents", "true", "no layer has attention: leave it out");
    }
    documents = builder.Input("document_starts", ids, shape.context);
  }
  ASSIGN_OR_RETURN(const WireId x, AddEach(listed, tokens, builder, {.documents = documents}));
  RETURN_IF_ERROR(CheckLogits(builder.type(x), ActivationType({shape.context, shape.vocabulary}),
                              listed, "of the vocabulary", kKeepRows));
  ASSIGN_OR_RETURN(Network network, builder.Finish({.output = x, .targets = targets}, path));
  if (shape.tied) RETURN_IF_ERROR(TieHead(layers, path + ".tied_embeddings", &network));
  return network;
}

absl::StatusOr<Network> ChainOnPairs(const PairShape& shape, const std::vector<LayerSpec>& encoder,
                                     const std::vector<LayerSpec>& decoder,
                                     const std::string& path) {
  const Listed listed_encoder{encoder, path + ".encoder"}, listed{decoder, path + ".layers"};
  RETURN_IF_ERROR(listed_encoder.CheckCount(kMaxLayers - 1));
  RETURN_IF_ERROR(listed.CheckCount(kMaxLayers - static_cast<int64_t>(encoder.size())));
  RETURN_IF_ERROR(CheckCrossing(listed_encoder, listed));
  NetworkBuilder builder(BranchStddev(encoder),
                         {.vocabulary = shape.vocabulary, .width = shape.width});
  const PairInputs inputs =
      AddPairInputs(shape.vocabulary, shape.source_context, shape.target_context, &builder);
  const WireId length = inputs.source_length;
  ASSIGN_OR_RETURN(const WireId memory,
                   AddEach(listed_encoder, inputs.source, builder, {.length = length}));
  builder.SetBranchStddev(BranchStddev(decoder));
  ASSIGN_OR_RETURN(const WireId x, AddEach(listed, inputs.tokens, builder,
                                           {.memory = memory, .memory_length = length}));
  const Shape logits = Shape::Of({{shape.target_context, Length::kTarget}, {shape.vocabulary}});
  RETURN_IF_ERROR(
      CheckLogits(builder.type(x), ActivationType(logits), listed, "of the vocabulary", kKeepRows));
  ASSIGN_OR_RETURN(Network network, builder.Finish({.output = x, .targets = inputs.targets}, path));
  RETURN_IF_ERROR(CheckReadsNoPadding(listed_encoder, listed, network));
  if (shape.tied) RETURN_IF_ERROR(TieHead(decoder, path + ".tied_embeddings", &network));
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
