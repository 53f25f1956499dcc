// sequence: layers by hand, each reading what the one before gives (network/zoo/layer_chain.h): on text, if width, context
// and vocabulary are given, or on images, if image and classes are.
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
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("width", width, 0, kMaxWidth);
    visit.Count("context", context, 0, kMaxContext);
    visit.Count("vocabulary", vocabulary, 0, kMaxVocabulary);
    visit.Counts("image", image, 1, kMaxImageSide, 3);
    visit.Count("classes", classes, 0, kMaxVocabulary);
    visit.Flag("tied_embeddings", tied_embeddings);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_SEQUENCE_H_
