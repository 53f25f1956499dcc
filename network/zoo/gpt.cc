#include "network/zoo/gpt.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"

namespace stagecoach {
namespace {

class Gpt final : public NetworkKindOf<GptSpec> {
  absl::StatusOr<Network> Write(const GptSpec& spec, const std::string& path) const override {
    if (spec.width % spec.heads != 0) {
      return FieldError(path + ".heads", absl::StrCat(spec.heads),
                        absl::StrCat("must divide the width ", spec.width));
    }
    const LayerNormSpec norm{.epsilon = spec.epsilon};
    const MlpSpec mlp{.hidden = spec.hidden == 0 ? 4 * spec.width : spec.hidden,
                      .exact_gelu = spec.exact_gelu};
    const auto branch = [&spec, &norm](LayerSpec inner) {
      ResidualSpec residual{{norm, std::move(inner)}};
      if (spec.dropout > 0) residual.layers.push_back(DropoutSpec{.rate = spec.dropout});
      return residual;
    };
    std::vector<LayerSpec> layers = {EmbeddingSpec{.dropout = spec.dropout}};
    for (int64_t i = 0; i < spec.layers; ++i) {
      layers.push_back(branch(AttentionSpec{.heads = spec.heads, .dropout = spec.dropout}));
      layers.push_back(branch(mlp));
    }
    layers.push_back(norm);
    layers.push_back(LinearSpec{.out = spec.vocabulary, .bias = false});
    return ChainOnTokens(
        {spec.width, spec.context, spec.vocabulary, spec.tied_embeddings, spec.documents}, layers,
        path);
  }
};

}  // namespace

const NetworkKind* GptNetwork() {
  static const Gpt kind;
  return &kind;
}

}  // namespace stagecoach
