// sequence: layers by hand, each reading what the one before gives. The last layer must give [., vocabulary] logits.
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
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("width", width, 1, kMaxWidth);
    visit.Count("context", context, 1, kMaxContext);
    visit.Count("vocabulary", vocabulary, 2, kMaxVocabulary);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_SEQUENCE_H_
