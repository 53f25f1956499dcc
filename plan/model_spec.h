// ModelSpec: a network as a user asks for it, from the zoo or as a list of layers (f_i, w_i, c_i of the GPipe
// paper, section 2.2). A partition may cut between any two layers of the network that it becomes.
// Units and shapes: the first layer reads token ids [context], the loss reads logits [context, vocabulary]; of one
//            sequence.
// Errors:    ExpandModel returns INVALID_ARGUMENT with the field path.
#ifndef STAGECOACH_PLAN_MODEL_SPEC_H_
#define STAGECOACH_PLAN_MODEL_SPEC_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/precision.h"
#include "network/layer_spec.h"
#include "network/network.h"

namespace stagecoach {

// Expands to: embedding; per block residual(layer_norm, attention, dropout) and
// residual(layer_norm, mlp, dropout); layer_norm; linear head without bias. So L blocks give 2L + 3
// layers. Dropout layers appear only where the rate is > 0.
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

absl::StatusOr<Network> ExpandModel(const ModelSpec& model,
                                    Precision precision = Precision::kFloat32);

// What weights belong to, as stable text: context, vocabulary, and every layer with its function,
// widths, parameter names and shapes. Equal texts can exchange checkpoints. Dropout rates and
// initial values are left out: they are how a network is trained, not what it is.
std::string CanonicalModelText(const Network& model);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_MODEL_SPEC_H_
