// transformer: an encoder and a decoder for pairs of sequences (Vaswani et al. 2017, 1706.03762).
// GPipe trains it on many languages at once (1811.06965, section 5). Its layers in order, with norm
// `pre`:
//   embedding of the source
//   per encoder layer residual(layer_norm, attention, dropout) and residual(layer_norm, mlp,
//     dropout); the attention sees the whole source up to its length
//   layer_norm; its output, the memory, goes along to the last decoder layer
//   embedding of the target
//   per decoder layer residual(layer_norm, attention, dropout) with a causal mask,
//     residual(layer_norm, cross_attention, dropout) to the memory, and residual(layer_norm, mlp,
//     dropout)
//   layer_norm; linear without bias to the logits, clipped if logit_clip is given
// With norm `post` each residual's norm is behind its sum, as in the paper. There are no others.
// E encoder and D decoder layers give 2E + 3D + 5 layers, with norm `post` 2 less. Dropout appears
// only if the rate is > 0.
// Initial values: a weight [out, in] begins with variance 1 / in, tables of embeddings with 1 /
// width. With init depth_scaled the deviation of the feed-forward's
// weights is divided by the number of layers of their half (GPipe, section 5).
// Inputs: those of pairs (network/zoo/pair_inputs.h).
// Padding of targets is a class that the objective ignores. Padding of tokens needs no mark: it
// lies behind all others, and the mask is causal.
#ifndef STAGECOACH_NETWORK_ZOO_TRANSFORMER_H_
#define STAGECOACH_NETWORK_ZOO_TRANSFORMER_H_

#include <cstdint>

#include "network/limits.h"
#include "operations/pointwise/clip.h"

namespace stagecoach {

enum class TransformerNorm { kPre, kPost };
enum class TransformerPositions { kSinusoidal, kLearned };
enum class TransformerTie { kAll, kTargetOutput, kNone };
enum class TransformerActivation { kRelu, kGelu };
enum class TransformerInit { kStandard, kDepthScaled };

struct TransformerSpec {
  static constexpr const char* kNetwork = "transformer";
  int64_t vocabulary = 0;  // of source and target
  int64_t source_context = 0, target_context = 0;
  int64_t width = 0;
  int64_t hidden = 0;  // width inside of the feed-forwards; 0: 4 * width
  int64_t heads = 0;
  int64_t head_width = 0;  // 0: width / heads
  int64_t encoder_layers = 0, decoder_layers = 0;
  TransformerNorm norm = TransformerNorm::kPre;
  TransformerPositions positions = TransformerPositions::kSinusoidal;
  TransformerTie tie = TransformerTie::kAll;  // of both embeddings and the last linear
  double dropout = 0;  // of embeddings, probabilities, activations and branches
  TransformerActivation activation = TransformerActivation::kRelu;
  double logit_clip = 0;  // 0: none
  TransformerInit init = TransformerInit::kStandard;
  bool bias = true;  // of attentions and feed-forwards
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("vocabulary", vocabulary, 2, kMaxVocabulary);
    visit.Count("source_context", source_context, 1, kMaxContext);
    visit.Count("target_context", target_context, 1, kMaxContext);
    visit.Count("width", width, 1, kMaxWidth);
    visit.Count("hidden", hidden, 0, kMaxHidden);
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Count("head_width", head_width, 0, kMaxWidth);
    visit.Count("encoder_layers", encoder_layers, 1, kMostLayers);
    visit.Count("decoder_layers", decoder_layers, 1, kMostLayers);
    visit.Choice("norm", norm, {"pre", "post"});
    visit.Choice("positions", positions, {"sinusoidal", "learned"});
    visit.Choice("tie", tie, {"all", "target_output", "none"});
    visit.Rate("dropout", dropout);
    visit.Choice("activation", activation, {"relu", "gelu"});
    visit.ZeroOrBetween("logit_clip", logit_clip, kLeastClipLimit, kMostClipLimit);
    visit.Choice("init", init, {"standard", "depth_scaled"});
    bool no_bias = !bias;  // what a job leaves out is false
    visit.Flag("no_bias", no_bias);
    bias = !no_bias;
  }
  static constexpr int64_t kMostLayers = (kMaxLayers - 5) / 5;  // of each half
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_TRANSFORMER_H_
