// For tests of writing: a small transformer on the pieces of stage/data/parallel/pair_network_testing.h.
#ifndef STAGECOACH_STAGE_TESTING_PAIR_TRANSFORMER_H_
#define STAGECOACH_STAGE_TESTING_PAIR_TRANSFORMER_H_

#include "network/network_spec.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/transformer.h"
#include "stage/data/parallel/pair_network_testing.h"

namespace stagecoach {

inline NetworkSpec PairTransformer() {
  NetworkSpec network = TransformerSpec{.vocabulary = kPairVocabulary,
                                        .source_context = 12,
                                        .target_context = 9,
                                        .width = 12,
                                        .hidden = 20,
                                        .heads = 3,
                                        .encoder_layers = 2,
                                        .decoder_layers = 2};
  network.objective = CrossEntropySpec{.ignore_index = kPairPad};
  return network;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_PAIR_TRANSFORMER_H_
