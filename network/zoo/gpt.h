// gpt: the layers in order:
//   embedding
//   per block residual(layer_norm, attention, dropout) and residual(layer_norm, mlp, dropout)
//   layer_norm; linear head without bias
// L blocks give 2L + 3 layers. Dropout layers appear only if the rate is > 0. With tied_embeddings
// the head is the embedding's tokens (Press and Wolf 2017, 1608.05859).
#ifndef STAGECOACH_NETWORK_ZOO_GPT_H_
#define STAGECOACH_NETWORK_ZOO_GPT_H_

#include <cstdint>

#include "network/limits.h"
#include "operations/attributes.h"

namespace stagecoach {

struct GptSpec {
  static constexpr const char* kNetwork = "gpt";
  int64_t layers = 0, width = 0, heads = 0, context = 0, vocabulary = 0;
  double dropout = 0.0;
  bool tied_embeddings = false;
  bool documents = false;  // attention stays within documents
  int64_t hidden = 0;      // width inside of the MLPs; 0: 4 * width
  double epsilon = 1e-5;
  bool exact_gelu = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("layers", layers, 1, (kMaxLayers - 3) / 2);
    visit.Count("width", width, 1, kMaxWidth);
    visit.Count("heads", heads, 1, kMaxWidth);
    visit.Count("context", context, 1, kMaxContext);
    visit.Count("vocabulary", vocabulary, 2, kMaxVocabulary);
    visit.Rate("dropout", dropout);
    visit.Flag("tied_embeddings", tied_embeddings);
    visit.Flag("documents", documents);
    visit.Count("hidden", hidden, 0, kMaxHidden);
    visit.Between("epsilon", epsilon, kMinEpsilon, kMaxEpsilon);
    visit.Flag("exact_gelu", exact_gelu);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_GPT_H_
