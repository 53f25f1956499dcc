// For tests of all kinds: networks with every kind of layer and every entry of the zoo.
#ifndef STAGECOACH_NETWORK_ZOO_EVERY_NETWORK_TESTING_H_
#define STAGECOACH_NETWORK_ZOO_EVERY_NETWORK_TESTING_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/convolution.h"
#include "network/layers/cross_attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/pools.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"
#include "network/network_spec.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/bert.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/mlp.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "network/zoo/transformer.h"
#include "network/zoo/unet.h"
#include "network/zoo/vit.h"

namespace stagecoach {

// Large enough that two threads share the work, odd enough that tiles have remainders.
inline SequenceSpec EveryKind() {
  const LayerSpec llama = AttentionSpec{.heads = 4,
                                        .key_heads = 2,
                                        .head_width = 10,
                                        .rotary_theta = 100,
                                        .qk_norm = true,
                                        .bias = false};
  const auto residual = [](std::vector<LayerSpec> layers) -> LayerSpec {
    return ResidualSpec{std::move(layers)};
  };
  return {
      .width = 36,
      .context = 19,
      .vocabulary = 67,
      .layers = {EmbeddingSpec{.dropout = 0.1, .position = false},
                 residual({RmsNormSpec{.epsilon = 1e-6}, llama}),
                 residual({RmsNormSpec{}, SwigluSpec{.hidden = 49}, DropoutSpec{.rate = 0.1}}),
                 residual({LayerNormSpec{}, AttentionSpec{.heads = 4, .dropout = 0.1}}),
                 residual({LayerNormSpec{}, MlpSpec{.hidden = 50}}),
                 residual({LinearSpec{.out = 41}, SiluSpec{}, LinearSpec{.out = 36}}),
                 residual({LinearSpec{.out = 41}, ReluSpec{}, LinearSpec{.out = 36}}), GeluSpec{},
                 BatchNormSpec{}, RmsNormSpec{}, LinearSpec{.out = 67, .bias = false}}};
}

// An image whose extents are no multiple of the kernels' tiles.
inline SequenceSpec EveryKindOnImages() {
  const ConvolutionSpec same{.out = 12, .kernel = {3}, .padding = {1}};
  return {.layers = {ConvolutionSpec{.out = 12, .kernel = {3, 5}, .padding = {1, 2}},
                     ResidualSpec{{same, ReluSpec{}, same}}, GroupNormSpec{.groups = 3},
                     ConvolutionSpec{
                         .out = 20, .kernel = {3}, .stride = {2, 1}, .groups = 4, .bias = false},
                     MaxPoolSpec{.kernel = {3}, .stride = {1, 2}, .padding = {1}}, ReluSpec{},
                     AveragePoolSpec{.kernel = {2}, .stride = {1}}, FlattenSpec{},
                     DropoutSpec{.rate = 0.1}, LinearSpec{.out = 7}},
          .image = {13, 11, 3},
          .classes = 7};
}
inline SequenceSpec GlobalPoolOnImages() {
  return {.layers = {ConvolutionSpec{.out = 9, .kernel = {3}, .dilation = {2}}, ReluSpec{},
                     GlobalPoolSpec{}, LinearSpec{.out = 5}},
          .image = {9, 8, 2},
          .classes = 5};
}

// An encoder and a decoder of two widths, and a layer with both attentions.
inline SequenceSpec EveryKindOnPairs() {
  const LayerSpec rotary = AttentionSpec{
      .heads = 4, .key_heads = 2, .head_width = 6, .rotary_theta = 100, .causal = false};
  const LayerSpec attention = AttentionSpec{.heads = 2, .dropout = 0.1};
  const LayerSpec cross = CrossAttentionSpec{.heads = 3, .head_width = 5, .dropout = 0.2};
  return {.width = 22,
          .vocabulary = 31,
          .layers = {EmbeddingSpec{.scaled = true},
                     ResidualSpec{{LayerNormSpec{}, SwigluSpec{.hidden = 35}}},
                     ResidualSpec{{attention, cross, DropoutSpec{.rate = 0.1}}}, RmsNormSpec{},
                     LinearSpec{.out = 31}},
          .tied_embeddings = true,
          .encoder = {EmbeddingSpec{.dropout = 0.1, .sinusoidal = true, .scaled = true},
                      ResidualSpec{{RmsNormSpec{}, rotary}}, LinearSpec{.out = 19}},
          .source_context = 13,
          .target_context = 9};
}

struct ListedKinds {
  std::string name;
  SequenceSpec list;
  friend void PrintTo(const ListedKinds& listed, std::ostream* out) { *out << listed.name; }
};

inline std::vector<ListedKinds> ListsOfEveryKind() {
  return {{"every_kind", EveryKind()},
          {"every_kind_on_images", EveryKindOnImages()},
          {"every_kind_on_pairs", EveryKindOnPairs()},
          {"global_pool", GlobalPoolOnImages()}};
}

// A cell of each section; the two reductions halve the image.
template <typename Spec>
Spec TinyAmoebanet() {
  Spec spec;
  spec.image = {12, 4, 3};
  spec.classes = 5;
  spec.layers = 3;
  spec.filters = 4;
  spec.stem = AmoebanetStem::kSmall;
  spec.dropout = 0.1;
  spec.drop_path = 0.3;
  return spec;
}

// The auxiliary head's pool leaves two rows and one column.
inline AmoebanetDSpec AmoebanetWithAuxiliary() {
  AmoebanetDSpec spec = TinyAmoebanet<AmoebanetDSpec>();
  spec.image = {16, 4, 3};
  spec.auxiliary_weight = 0.4;
  spec.auxiliary_scale = 0.05;
  return spec;
}

struct ZooEntry {
  std::string name;
  NetworkSpec spec;
  // Parameters in front, so that the first of four stages has only forwards, and part of a later
  // layer.
  std::vector<std::string> frozen;
  // Maxima over windows: if two numbers are nearly equal, rounding decides which of them gets the
  // gradient. Two devices then soon train apart.
  bool has_kinks = false;
  friend void PrintTo(const ZooEntry& entry, std::ostream* out) { *out << entry.name; }
};

// Tiny, and odd enough that tiles have remainders.
inline std::vector<ZooEntry> ZooEntries() {
  const LayerSpec block = ResidualSpec{
      {BatchNormSpec{.momentum = 0.3}, LinearSpec{.out = 41}, ReluSpec{}, LinearSpec{.out = 36}}};
  return {
      {"amoebanet_b",
       TinyAmoebanet<AmoebanetBSpec>(),
       {"model/0000/*", "model/0001/*", "model/0003/s2.*"},
       /*has_kinks=*/true},
      {"amoebanet_d",
       TinyAmoebanet<AmoebanetDSpec>(),
       {"model/0000/*", "model/0001/*", "model/0003/s0.*"},
       /*has_kinks=*/true},
      {"amoebanet_d_auxiliary",
       AmoebanetWithAuxiliary(),
       {"model/0000/*", "model/0001/*", "model/0003/auxiliary.first.*"},
       /*has_kinks=*/true},
      {"bert",
       BertSpec{.layers = 2,
                .width = 21,
                .heads = 3,
                .context = 11,
                .vocabulary = 37,
                .segments = 3,
                .hidden = 41,
                .dropout = 0.2,
                .attention_dropout = 0.1},
       {"model/0000/*", "model/0001/*", "model/0003/attention.qkv.*"}},
      {"gpt",
       GptSpec{
           .layers = 2, .width = 21, .heads = 3, .context = 11, .vocabulary = 37, .dropout = 0.2},
       {"model/0000/*", "model/0001/*", "model/0003/attention.qkv.*"}},
      {"gpt_tied",
       GptSpec{.layers = 2,
               .width = 21,
               .heads = 3,
               .context = 11,
               .vocabulary = 37,
               .dropout = 0.2,
               .tied_embeddings = true},
       {"model/0000/*", "model/0001/*"}},
      {"gpt_documents",
       GptSpec{.layers = 2,
               .width = 21,
               .heads = 3,
               .context = 11,
               .vocabulary = 37,
               .dropout = 0.2,
               .documents = true},
       {"model/0000/*", "model/0001/*", "model/0003/attention.qkv.*"}},
      {"llama",
       LlamaSpec{.layers = 2,
                 .width = 24,
                 .heads = 6,
                 .key_heads = 2,
                 .head_width = 10,
                 .hidden = 33,
                 .context = 13,
                 .vocabulary = 31,
                 .qk_norm = true},
       {"model/0000/*", "model/0001/*", "*.gate.weight"}},
      // Gradients of the keys' biases are small differences. With tied embeddings as well, AdamW makes
      // whole steps of what rounding leaves there, and two devices soon train apart.
      {"llama_scaled",
       LlamaSpec{.layers = 2,
                 .width = 24,
                 .heads = 6,
                 .key_heads = 3,
                 .hidden = 33,
                 .context = 13,
                 .vocabulary = 31,
                 .rotary_theta = 100,
                 .qkv_bias = true,
                 .scaling = {.form = RotaryScalingForm::kLlama3,
                             .factor = 2,
                             .low_frequency_factor = 1,
                             .high_frequency_factor = 2,
                             .original_context = 9}},
       {"model/0000/*", "model/0001/*", "model/0003/attention.qkv.bias"}},
      {"mlp",
       MlpNetworkSpec{.image = {7, 5, 3}, .hidden = 41, .layers = 3, .classes = 10},
       {"model/0001/*", "model/0003/bias"}},
      {"resnet",
       ResnetSpec{.image = {9, 7, 3}, .classes = 5, .depth = 8, .width = 6},
       {"model/0000/*", "model/0001/*", "model/0002/first.*"}},
      {"resnet_bottlenecks",
       ResnetSpec{.image = {35, 33, 3},
                  .classes = 5,
                  .depth = 50,
                  .width = 4,
                  .form = ResnetForm::kImagenet,
                  .zero_init_residual = true,
                  .drop_path = 0.3},
       {"model/0000/*", "model/0001/*", "model/0002/*", "model/0003/*", "model/0004/*",
        "model/0005/first.*"},
       /*has_kinks=*/true},
      {"resnet_groups",
       ResnetSpec{.image = {9, 7, 3},
                  .classes = 5,
                  .depth = 18,
                  .width = 6,
                  .form = ResnetForm::kImagenet,
                  .stem = ResnetStem::kSmall,
                  .norm = ResnetNorm::kGroup,
                  .groups = 3,
                  .drop_path = 0.3},
       {"model/0000/*", "model/0001/*", "model/0002/*", "model/0003/first.*"}},
      {"sequence",
       SequenceSpec{.width = 36,
                    .context = 11,
                    .vocabulary = 17,
                    .layers = {EmbeddingSpec{.dropout = 0.1}, block, DropoutSpec{.rate = 0.2},
                               BatchNormSpec{}, ReluSpec{}, block, LinearSpec{.out = 17}}},
       {"model/0000/*", "model/0001/*", "model/0005/batch_norm.weight"}},
      {"sequence_encoder", EveryKindOnPairs(), {"model/0000/*", "model/0001/*"}},
      // Encoder and decoder share a frozen embedding, and the decoder trains behind it.
      {"transformer",
       TransformerSpec{.vocabulary = 37,
                       .source_context = 13,
                       .target_context = 11,
                       .width = 22,
                       .hidden = 41,
                       .heads = 3,
                       .head_width = 5,
                       .encoder_layers = 1,
                       .decoder_layers = 2,
                       .dropout = 0.2,
                       .logit_clip = 1.5,
                       .init = TransformerInit::kDepthScaled},
       {"model/0000/*", "model/0001/*", "model/0002/*", "model/0003/*",
        "model/0006/cross_attention.kv.*"}},
      {"transformer_post_norm",
       TransformerSpec{.vocabulary = 31,
                       .source_context = 9,
                       .target_context = 14,
                       .width = 21,
                       .hidden = 34,
                       .heads = 3,
                       .encoder_layers = 2,
                       .decoder_layers = 1,
                       .norm = TransformerNorm::kPost,
                       .positions = TransformerPositions::kLearned,
                       .tie = TransformerTie::kTargetOutput,
                       .activation = TransformerActivation::kGelu,
                       .bias = false},
       {"model/0000/*", "model/0001/*", "model/0002/*", "model/0003/attention.*"}},
      {"unet",
       UnetSpec{.image = {8, 12, 3}, .channels_out = 5, .base = 6, .depth = 2},
       {"model/0000/*", "model/0001/*", "model/0003/up.weight"},
       /*has_kinks=*/true},
      {"unet_nearest",
       UnetSpec{.image = {4, 8, 2},
                .channels_out = 3,
                .base = 6,
                .depth = 2,
                .convolutions = 3,
                .upsample = UnetUpsample::kNearest,
                .norm = UnetNorm::kNone},
       {"model/0000/*", "model/0001/*", "model/0003/c1.*"},
       /*has_kinks=*/true},
      {"vit",
       VitSpec{.image = {15, 10, 3},
               .classes = 7,
               .patch = 5,
               .layers = 2,
               .width = 21,
               .heads = 3,
               .hidden = 34,
               .dropout = 0.1,
               .attention_dropout = 0.2},
       {"model/0000/*", "model/0001/*", "model/0003/attention.qkv.*"}}};
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_EVERY_NETWORK_TESTING_H_
