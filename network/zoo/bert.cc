#include "network/zoo/bert.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/network_builder.h"
#include "network/network_kind.h"
#include "network/passes/tied.h"
#include "network/zoo/branch.h"
#include "operations/attention/embedding.h"

namespace stagecoach {
namespace {

// Writes one network; used once. The fields are checked.
class BertWriter {
 public:
  BertWriter(const BertSpec& spec, const std::string& path)
      : spec_(spec),
        path_(path),
        builder_(kInitStddev, {.vocabulary = spec.vocabulary, .width = spec.width}) {}

  absl::StatusOr<Network> Write() {
    const ValueType ids{Element::kIds, Leading::kSamples, {spec_.context}};
    const WireId tokens = builder_.Input("tokens", ids, spec_.vocabulary);
    const WireId segments = builder_.Input("segments", ids, spec_.segments);
    const WireId targets = builder_.Input("targets", ids, spec_.vocabulary);
    ASSIGN_OR_RETURN(WireId x, AddEmbedding(tokens, segments));
    for (int64_t i = 0; i < spec_.layers; ++i) {
      for (const LayerSpec& layer : Branches()) {
        const Branch branch{
            .layer = layer, .norm = Norm(), .place = NormPlace::kPost, .dropout = spec_.dropout};
        ASSIGN_OR_RETURN(x, AddBranch(branch, path_, x, {}, &builder_));
      }
    }
    ASSIGN_OR_RETURN(x, AddTransform(x));
    ASSIGN_OR_RETURN(x, builder_.Add(LinearSpec{.out = spec_.vocabulary}, path_, x));
    ASSIGN_OR_RETURN(Network network, builder_.Finish({.output = x, .targets = targets}, path_));
    // Embedding and linear have their matrix as their first parameter.
    RETURN_IF_ERROR(TieParameter(network.layers.back().parameters.front().name,
                                 network.layers.front().parameters.front().name, path_, &network));
    return network;
  }

 private:
  using Values = std::vector<ValueId>;

  LayerSpec Norm() const { return LayerNormSpec{.epsilon = spec_.epsilon}; }

  // Those of a block.
  std::vector<LayerSpec> Branches() const {
    return {
        AttentionSpec{.heads = spec_.heads, .dropout = spec_.attention_dropout, .causal = false},
        MlpSpec{.hidden = spec_.hidden == 0 ? 4 * spec_.width : spec_.hidden,
                .exact_gelu = !spec_.tanh_gelu}};
  }

  absl::StatusOr<WireId> AddEmbedding(WireId tokens, WireId segments) {
    const auto write = [this](const Values& inputs, LayerBuilder& layer) -> absl::StatusOr<Values> {
      const LayerPlace place{.path = path_};
      const auto table = [&](const char* name, int64_t rows) {
        return layer.Weight(place, name, {rows, spec_.width}, kInitStddev);
      };
      const ValueId token = table("token.weight", spec_.vocabulary);
      const ValueId position = table("position.weight", spec_.context);
      const ValueId segment = table("segment.weight", spec_.segments);
      LayerWriter& writer = layer.writer();
      const EmbeddingAttributes both{}, alone{.tokens_only = true};
      const ValueId words =
          writer.Emit("embedding", ToAttributes(both), {inputs[0], token, position})[0];
      const ValueId parts = writer.Emit("embedding", ToAttributes(alone), {inputs[1], segment})[0];
      ValueId x = writer.Emit("add", {}, {words, parts})[0];
      RETURN_IF_ERROR(writer.status());
      ASSIGN_OR_RETURN(x, BuildLayer(Norm(), x, {.path = path_, .prefix = "layer_norm."}, layer));
      if (spec_.dropout > 0) {
        ASSIGN_OR_RETURN(x, BuildLayer(DropoutSpec{.rate = spec_.dropout}, x, place, layer));
      }
      return Values{x};
    };
    const std::string function = absl::StrCat("bert_embedding:", LayerFunction(Norm()));
    ASSIGN_OR_RETURN(
        const std::vector<WireId> x,
        builder_.Add({"embedding, layer_norm", function, path_}, {tokens, segments}, write));
    return x[0];
  }

  // What stands in front of the logits.
  absl::StatusOr<WireId> AddTransform(WireId x) {
    const std::vector<std::pair<LayerSpec, std::string>> parts = {
        {LinearSpec{.out = spec_.width}, "linear."},
        {GeluSpec{.exact = !spec_.tanh_gelu}, ""},
        {Norm(), "layer_norm."}};
    std::string function = "transform(";
    for (const auto& [part, prefix] : parts) {
      absl::StrAppend(&function, function.back() == '(' ? "" : " ", LayerFunction(part));
    }
    const auto write = [&](ValueId y, LayerBuilder& layer) -> absl::StatusOr<ValueId> {
      for (const auto& [part, prefix] : parts) {
        ASSIGN_OR_RETURN(y, BuildLayer(part, y, {.path = path_, .prefix = prefix}, layer));
      }
      return y;
    };
    return builder_.Add({"linear, gelu, layer_norm", function + ")", path_}, x, {}, write);
  }

  const BertSpec& spec_;
  const std::string& path_;
  NetworkBuilder builder_;
};

class Bert final : public NetworkKindOf<BertSpec> {
  absl::StatusOr<Network> Write(const BertSpec& spec, const std::string& path) const override {
    if (spec.width % spec.heads == 0) return BertWriter(spec, path).Write();
    return FieldError(path + ".heads", absl::StrCat(spec.heads),
                      absl::StrCat("must divide the width ", spec.width));
  }
};

}  // namespace

const NetworkKind* BertNetwork() {
  static const Bert kind;
  return &kind;
}

}  // namespace stagecoach
