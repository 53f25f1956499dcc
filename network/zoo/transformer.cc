#include "network/zoo/transformer.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "network/layers/attention.h"
#include "network/layers/cross_attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/network_builder.h"
#include "network/network_kind.h"
#include "network/passes/tied.h"
#include "network/zoo/branch.h"
#include "network/zoo/pair_inputs.h"

namespace stagecoach {
namespace {

// Writes one network; used once. The fields are checked.
class TransformerWriter {
 public:
  TransformerWriter(const TransformerSpec& spec, const std::string& path)
      : spec_(spec),
        path_(path),
        builder_(kInitStddev, {.vocabulary = spec.vocabulary, .width = spec.width}) {}

  absl::StatusOr<Network> Write() {
    const PairInputs inputs =
        AddPairInputs(spec_.vocabulary, spec_.source_context, spec_.target_context, &builder_);
    length_ = inputs.source_length;
    ASSIGN_OR_RETURN(const WireId memory, AddEncoder(inputs.source));
    const size_t target_embedding = stddevs_.size();
    ASSIGN_OR_RETURN(const WireId y, AddDecoder(inputs.tokens, memory));
    ASSIGN_OR_RETURN(const WireId logits, AddOutput(y));
    ASSIGN_OR_RETURN(Network network,
                     builder_.Finish({.output = logits, .targets = inputs.targets}, path_));
    SetInitialValues(&network);
    RETURN_IF_ERROR(Tie(target_embedding, &network));
    return network;
  }

 private:
  using Values = std::vector<ValueId>;
  // The inside of a residual.
  struct Inner {
    LayerSpec layer;
    SideInputs<WireId> sides = {};  // of its wires
    double factor = 1;              // of the deviation of its initial weights
  };

  absl::StatusOr<WireId> AddEncoder(WireId source) {
    ASSIGN_OR_RETURN(WireId x, AddEmbedding(source));
    for (int64_t i = 0; i < spec_.encoder_layers; ++i) {
      ASSIGN_OR_RETURN(x, AddResidual({SelfAttention(/*causal=*/false), {.length = length_}}, x));
      ASSIGN_OR_RETURN(x, AddResidual(FeedForward(spec_.encoder_layers), x));
    }
    return AddLastNorm(x);
  }

  absl::StatusOr<WireId> AddDecoder(WireId tokens, WireId memory) {
    ASSIGN_OR_RETURN(WireId x, AddEmbedding(tokens));
    for (int64_t i = 0; i < spec_.decoder_layers; ++i) {
      ASSIGN_OR_RETURN(x, AddResidual({SelfAttention(/*causal=*/true)}, x));
      ASSIGN_OR_RETURN(x, AddResidual(CrossAttention(memory), x));
      ASSIGN_OR_RETURN(x, AddResidual(FeedForward(spec_.decoder_layers), x));
    }
    return AddLastNorm(x);
  }

  absl::StatusOr<WireId> AddEmbedding(WireId ids) {
    return Add(EmbeddingSpec{.dropout = spec_.dropout,
                             .sinusoidal = spec_.positions == TransformerPositions::kSinusoidal,
                             .scaled = true},
               ids);
  }

  absl::StatusOr<WireId> AddLastNorm(WireId x) {
    if (spec_.norm == TransformerNorm::kPost) return x;
    return Add(LayerNormSpec{}, x);
  }

  absl::StatusOr<WireId> AddOutput(WireId x) {
    const LayerSpec linear = LinearSpec{.out = spec_.vocabulary, .bias = false};
    if (spec_.logit_clip == 0) return Add(linear, x);
    const auto write = [&](const Values& inputs, LayerBuilder& layer) -> absl::StatusOr<Values> {
      ASSIGN_OR_RETURN(const ValueId y, BuildLayer(linear, inputs[0], {.path = path_}, layer));
      return layer.writer().Emit("clip", ToAttributes(ClipAttributes{spec_.logit_clip}), {y});
    };
    stddevs_.push_back(1);
    const std::string function =
        absl::StrCat(LayerFunction(linear), ":clip=", ExactText(spec_.logit_clip));
    ASSIGN_OR_RETURN(const std::vector<WireId> y,
                     builder_.Add({"linear, clip", function, path_}, {x}, write));
    return y[0];
  }

  LayerSpec SelfAttention(bool causal) const {
    return AttentionSpec{.heads = spec_.heads,
                         .dropout = spec_.dropout,
                         .head_width = spec_.head_width,
                         .bias = spec_.bias,
                         .causal = causal};
  }

  Inner CrossAttention(WireId memory) const {
    return {.layer = CrossAttentionSpec{.heads = spec_.heads,
                                        .head_width = spec_.head_width,
                                        .dropout = spec_.dropout,
                                        .bias = spec_.bias},
            .sides = {.memory = memory, .memory_length = length_}};
  }

  Inner FeedForward(int64_t layers_of_half) const {
    const bool scaled = spec_.init == TransformerInit::kDepthScaled;
    return {.layer = MlpSpec{.hidden = spec_.hidden,
                             .dropout = spec_.dropout,
                             .bias = spec_.bias,
                             .relu = spec_.activation == TransformerActivation::kRelu},
            .factor = scaled ? 1 / static_cast<double>(layers_of_half) : 1};
  }

  absl::StatusOr<WireId> AddResidual(const Inner& inner, WireId x) {
    stddevs_.push_back(inner.factor);
    const Branch branch{
        .layer = inner.layer,
        .norm = LayerNormSpec{},
        .place = spec_.norm == TransformerNorm::kPre ? NormPlace::kPre : NormPlace::kPost,
        .dropout = spec_.dropout};
    return AddBranch(branch, path_, x, inner.sides, &builder_);
  }

  absl::StatusOr<WireId> Add(const LayerSpec& layer, WireId x) {
    stddevs_.push_back(1);
    return builder_.Add(layer, path_, x);
  }

  // Biases begin with 0, norms with 1.
  void SetInitialValues(Network* network) const {
    for (NetworkLayer& layer : network->layers) {
      for (ParameterSpec& parameter : layer.parameters) {
        if (parameter.init != ParameterSpec::Init::kNormal) continue;
        parameter.init_stddev = stddevs_[static_cast<size_t>(layer.index)] /
                                std::sqrt(static_cast<double>(parameter.shape[1]));
      }
    }
  }

  // Embeddings and the last linear have their matrix as their first parameter.
  absl::Status Tie(size_t target_embedding, Network* network) const {
    if (spec_.tie == TransformerTie::kNone) return absl::OkStatus();
    const auto matrix = [network](size_t layer) {
      return network->layers[layer].parameters.front().name;
    };
    const bool all = spec_.tie == TransformerTie::kAll;
    const std::string path = path_ + ".tie", owner = matrix(all ? 0 : target_embedding);
    if (all) RETURN_IF_ERROR(TieParameter(matrix(target_embedding), owner, path, network));
    return TieParameter(matrix(network->layers.size() - 1), owner, path, network);
  }

  const TransformerSpec& spec_;
  const std::string& path_;
  NetworkBuilder builder_;
  WireId length_;                // of the source
  std::vector<double> stddevs_;  // of each layer's initial weights, times the root of their inputs
};

class Transformer final : public NetworkKindOf<TransformerSpec> {
  absl::StatusOr<Network> Write(const TransformerSpec& spec,
                                const std::string& path) const override {
    RETURN_IF_ERROR(Check(spec, path));
    TransformerSpec whole = spec;
    if (whole.hidden == 0) whole.hidden = 4 * whole.width;
    if (whole.head_width == 0) whole.head_width = whole.width / whole.heads;
    return TransformerWriter(whole, path).Write();
  }

  static absl::Status Check(const TransformerSpec& spec, const std::string& path) {
    if (spec.head_width == 0 && spec.width % spec.heads != 0) {
      return FieldError(
          path + ".heads", absl::StrCat(spec.heads),
          absl::StrCat("must divide the width ", spec.width, ", or give a head_width"));
    }
    const int64_t most = kMaxHidden / (3 * spec.heads);
    if (spec.head_width > most) {
      return FieldError(path + ".head_width", absl::StrCat(spec.head_width),
                        absl::StrCat("must be <= ", most, " with ", spec.heads,
                                     " heads: 3 * heads * head_width may be ", kMaxHidden));
    }
    if (spec.positions == TransformerPositions::kSinusoidal && spec.width % 2 != 0) {
      return FieldError(path + ".width", absl::StrCat(spec.width),
                        "must be even with positions: sinusoidal; give an even one, or positions: "
                        "learned");
    }
    return absl::OkStatus();
  }
};

}  // namespace

const NetworkKind* TransformerNetwork() {
  static const Transformer kind;
  return &kind;
}

}  // namespace stagecoach
