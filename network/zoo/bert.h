// bert: an encoder of text that learns masked tokens, as BERT (Devlin et al. 2018, 1810.04805). Its
// layers in order:
//   bert_embedding: token plus position plus segment, layer_norm, dropout
//   per block residual(attention, dropout), layer_norm and residual(mlp, dropout), layer_norm; the
//     attention sees the whole sequence
//   linear, gelu, layer_norm
//   linear to the logits, with the embedding's tokens as its weight and a bias of its own
// L blocks give 2L + 3 layers. Dropout appears only if the rate is > 0.
// Inputs: "tokens", "segments" and "targets", ids [context]. A segment tells the parts of a sequence
// apart. Where no token is to be found, the target is a class that the objective ignores.
#ifndef STAGECOACH_NETWORK_ZOO_BERT_H_
#define STAGECOACH_NETWORK_ZOO_BERT_H_

#include <cstdint>

#include "network/limits.h"
#include "operations/attributes.h"

namespace stagecoach {

struct BertSpec {
  static constexpr const char* kNetwork = "bert";
  int64_t layers = 0, width = 0, heads = 0, context = 0, vocabulary = 0;
  int64_t segments = 2;          // ids of segments
  int64_t hidden = 0;            // width inside of the MLPs; 0: 4 * width
  double dropout = 0;            // of the embedding and of branches
  double attention_dropout = 0;  // of the probabilities
  double epsilon = 1e-12;
  bool tanh_gelu = false;  // otherwise it is exact
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("layers", layers, 1, (kMaxLayers - 3) / 2);
    visit.Count("width", width, 1, kMaxWidth);
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Count("context", context, 1, kMaxContext);
    visit.Count("vocabulary", vocabulary, 2, kMaxVocabulary);
    visit.Count("segments", segments, 1, kMaxVocabulary);
    visit.Count("hidden", hidden, 0, kMaxHidden);
    visit.Rate("dropout", dropout);
    visit.Rate("attention_dropout", attention_dropout);
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
    visit.Flag("tanh_gelu", tanh_gelu);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_BERT_H_
