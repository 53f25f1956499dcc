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
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/precision.h"
#include "network/layer_spec.h"
#include "network/lists.h"
#include "network/parameter.h"

namespace stagecoach {

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
  // What a stage runs of it; the parameters of the lists are those above, in this order. Equal layers
  // share their lists.
  std::shared_ptr<const LayerLists> lists;
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

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_MODEL_SPEC_H_
