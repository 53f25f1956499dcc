#include "network/zoo/llama.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"
#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"

namespace stagecoach {
namespace {

class Llama final : public NetworkKindOf<LlamaSpec> {
  absl::StatusOr<Network> Write(const LlamaSpec& spec, const std::string& path) const override {
    RETURN_IF_ERROR(CheckHeads(spec, path));
    RETURN_IF_ERROR(CheckRotaryScaling(spec.scaling, spec.rotary_theta, path + "."));
    const RmsNormSpec norm{.epsilon = spec.epsilon};
    const AttentionSpec attention{.heads = spec.heads,
                                  .key_heads = spec.key_heads,
                                  .head_width = spec.head_width,
                                  .rotary_theta = spec.rotary_theta,
                                  .qk_norm = spec.qk_norm,
                                  .bias = false,
                                  .qkv_bias = spec.qkv_bias,
                                  .scaling = spec.scaling};
    std::vector<LayerSpec> layers = {EmbeddingSpec{.position = false}};
    for (int64_t i = 0; i < spec.layers; ++i) {
      layers.push_back(ResidualSpec{{norm, attention}});
      layers.push_back(ResidualSpec{{norm, SwigluSpec{.hidden = spec.hidden}}});
    }
    layers.push_back(norm);
    layers.push_back(LinearSpec{.out = spec.vocabulary, .bias = false});
    return ChainOnTokens(
        {spec.width, spec.context, spec.vocabulary, spec.tied_embeddings, spec.documents}, layers,
        path);
  }

  // What attention would refuse with the path of a layer that the job does not list.
  static absl::Status CheckHeads(const LlamaSpec& spec, const std::string& path) {
    const bool own_width = spec.head_width > 0;
    if (!own_width && spec.width % spec.heads != 0) {
      return FieldError(
          path + ".heads", absl::StrCat(spec.heads),
          absl::StrCat("must divide the width ", spec.width, ", or give a head_width"));
    }
    if (spec.key_heads > 0 && spec.heads % spec.key_heads != 0) {
      return FieldError(path + ".key_heads", absl::StrCat(spec.key_heads),
                        absl::StrCat("must divide the ", spec.heads, " heads"));
    }
    const int64_t head_width = own_width ? spec.head_width : spec.width / spec.heads;
    if (head_width % 2 != 0) {
      return FieldError(
          path + ".head_width", absl::StrCat(head_width),
          "must be even, for rotary positions: give an even head_width or other heads");
    }
    const int64_t key_heads = spec.key_heads > 0 ? spec.key_heads : spec.heads;
    if (head_width > kMaxHidden / (spec.heads + 2 * key_heads)) {
      return FieldError(
          path + ".head_width", absl::StrCat(head_width),
          absl::StrCat("(heads + 2 * key_heads) * head_width must be at most ", kMaxHidden));
    }
    return absl::OkStatus();
  }
};

}  // namespace

const NetworkKind* LlamaNetwork() {
  static const Llama kind;
  return &kind;
}

}  // namespace stagecoach
