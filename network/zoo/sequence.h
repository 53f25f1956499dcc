// sequence: layers that a job lists, each reading the output of the one before
// (network/zoo/layer_chain.h). If width, context and vocabulary are given, it works on text. If
// image and classes are given, it works on images. If an encoder is given, it works on pairs of
// sequences, and `layers` are the decoder.
#ifndef STAGECOACH_NETWORK_ZOO_SEQUENCE_H_
#define STAGECOACH_NETWORK_ZOO_SEQUENCE_H_

#include <cstdint>
#include <vector>

#include "network/layer_spec.h"
#include "network/limits.h"

namespace stagecoach {

struct SequenceSpec {
  static constexpr const char* kNetwork = "sequence";
  int64_t width = 0, context = 0, vocabulary = 0;  // width: what the embedding gives
  std::vector<LayerSpec> layers;
  std::vector<int64_t> image = {};  // height, width, channels
  int64_t classes = 0;
  bool tied_embeddings = false;
  bool documents = false;  // attention stays within documents
  std::vector<LayerSpec> encoder = {};
  int64_t source_context = 0, target_context = 0;  // with an encoder, in place of context
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("width", width, 0, kMaxWidth);
    visit.Count("context", context, 0, kMaxContext);
    visit.Count("vocabulary", vocabulary, 0, kMaxVocabulary);
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("classes", classes, 0, kMaxVocabulary);
    visit.Flag("tied_embeddings", tied_embeddings);
    visit.Flag("documents", documents);
    visit.Count("source_context", source_context, 0, kMaxContext);
    visit.Count("target_context", target_context, 0, kMaxContext);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_SEQUENCE_H_
