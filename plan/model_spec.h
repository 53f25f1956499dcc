// ModelSpec: a network as a sequence of layers (f_i, w_i, c_i of the GPipe paper, section 2.2),
// from the zoo or listed by hand. A partition may cut between any two layers of the expanded
// sequence.
// Units and shapes: activations between layers are [sequences * context, width] of the precision's
//            type; the first layer reads token ids [sequences, context], the loss reads logits
//            [sequences * context, vocabulary].
// Errors:    ExpandModel returns INVALID_ARGUMENT with the field path.
#ifndef STAGECOACH_PLAN_MODEL_SPEC_H_
#define STAGECOACH_PLAN_MODEL_SPEC_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/precision.h"
#include "base/shape.h"

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

struct GptSpec {
  int64_t layers = 0, width = 0, heads = 0, context = 0, vocabulary = 0;
  double dropout = 0.0;
  friend bool operator==(const GptSpec&, const GptSpec&) = default;
};

// Layers by hand. The last layer must give [., vocabulary] logits; width: what the embedding gives.
struct LayerListSpec {
  int64_t width = 0, context = 0, vocabulary = 0;
  std::vector<LayerSpec> layers;
  friend bool operator==(const LayerListSpec&, const LayerListSpec&) = default;
};

using ModelSpec = std::variant<GptSpec, LayerListSpec>;

// One trainable array. Its global name is K-free: "model/<layer, 4 digits>/<path>", for example
// "model/0003/mlp.up.weight"; the byte order of names is the order of layers.
struct ParameterSpec {
  enum class Init { kZeros, kOnes, kNormal };
  std::string name;  // global
  Shape shape;
  Init init = Init::kZeros;
  double init_stddev = 0.0;
  int index = 0;       // within the layer; the random stream's operation for its initial values
  bool decay = false;  // weight decay applies (rank >= 2)
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// A layer of the expanded sequence: what it is, what goes in and out, what it owns.
// GPT expands to: embedding; per block residual(layer_norm, attention, dropout) and
// residual(layer_norm, mlp, dropout); layer_norm; linear head without bias. So L blocks give 2L + 3
// layers. Dropout layers appear only where the rate is > 0.
struct ExpandedLayer {
  int index = 0;
  std::string label;  // "embedding", "residual(layer_norm, attention)", ...
  LayerSpec spec;
  int64_t width_in = 0;  // 0 for the embedding (reads ids)
  int64_t width_out = 0;
  std::vector<ParameterSpec> parameters;  // in the order of ParameterSpec::index
};

struct ExpandedModel {
  int64_t context = 0;
  int64_t vocabulary = 0;
  std::vector<ExpandedLayer> layers;
  Precision precision = Precision::kFloat32;
};

absl::StatusOr<ExpandedModel> ExpandModel(const ModelSpec& model,
                                          Precision precision = Precision::kFloat32);

// What weights belong to, as stable text: context, vocabulary, and every layer with its function,
// widths, parameter names and shapes. Equal texts can exchange checkpoints. Dropout rates and
// initial values are left out: they are how a network is trained, not what it is.
std::string CanonicalModelText(const ExpandedModel& model);

// Paths of parameters inside one layer, used for names on both sides: "attention.qkv.weight" for an
// attention inside a residual, "token.weight" for the embedding itself. A residual prefixes its
// inner layers' kind ("layer_norm", "attention", "mlp", "linear", and a number from the second of a
// kind). Initial values: normal(0, 0.02), biases zero, layer norm weights one; "proj.weight" of
// attention and "down.weight" of an mlp inside the residuals of a GPT: 0.02 / sqrt(2 * blocks); for
// a layer list, blocks = residual layers / 2, at least 1/2.

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_MODEL_SPEC_H_
