// Layer kinds: what a user lists in a job, and the few facts about each that expansion and text share.
// What a kind computes is in network/layers, one file a kind.
// Units and shapes: widths in elements.
#ifndef STAGECOACH_NETWORK_LAYER_KINDS_H_
#define STAGECOACH_NETWORK_LAYER_KINDS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace stagecoach {

struct LayerSpec;

// Token plus learned position embedding, then dropout. Parameters: token.weight [vocabulary,
// width], position.weight [context, width].
struct EmbeddingSpec {
  double dropout = 0.0;
  friend bool operator==(const EmbeddingSpec&, const EmbeddingSpec&) = default;
};
// Parameters: weight [width], bias [width]. epsilon 1e-5.
struct LayerNormSpec {
  friend bool operator==(const LayerNormSpec&, const LayerNormSpec&) = default;
};
// Causal multi-head self-attention with both projections. Parameters: qkv.weight [3*width, width],
// qkv.bias, proj.weight [width, width], proj.bias. dropout acts on the attention probabilities.
struct AttentionSpec {
  int64_t heads = 1;
  double dropout = 0.0;
  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};
// Linear, GELU (tanh form), linear. Parameters: up.weight [hidden, width], up.bias,
// down.weight [width, hidden], down.bias.
struct MlpSpec {
  int64_t hidden = 0;
  friend bool operator==(const MlpSpec&, const MlpSpec&) = default;
};
// Parameters: weight [out, in], bias [out] if bias.
struct LinearSpec {
  int64_t out = 0;
  bool bias = true;
  friend bool operator==(const LinearSpec&, const LinearSpec&) = default;
};
struct GeluSpec {
  friend bool operator==(const GeluSpec&, const GeluSpec&) = default;
};
struct DropoutSpec {
  double rate = 0.0;
  friend bool operator==(const DropoutSpec&, const DropoutSpec&) = default;
};
// x + f(x), f = the inner layers in order; they must keep the width.
struct ResidualSpec {
  std::vector<LayerSpec> layers;
  friend bool operator==(const ResidualSpec&, const ResidualSpec&);
};

struct LayerSpec {
  std::variant<EmbeddingSpec, LayerNormSpec, AttentionSpec, MlpSpec, LinearSpec, GeluSpec,
               DropoutSpec, ResidualSpec>
      kind;
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};
inline bool operator==(const ResidualSpec& a, const ResidualSpec& b) {
  return a.layers == b.layers;
}

// Visitor out of lambdas, one per kind of layer.
template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

const char* LayerKindName(const LayerSpec& layer);  // "layer_norm", as in YAML and parameter names
std::string LayerLabel(const LayerSpec& layer);     // "residual(layer_norm, attention)"

// What a valid layer gives for `width_in`; the embedding's width is the model's, so `width_in` too.
int64_t LayerWidthOut(const LayerSpec& layer, int64_t width_in);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYER_KINDS_H_
