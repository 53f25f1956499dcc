// Inputs of a network for pairs of sequences, an encoder and a decoder.
#ifndef STAGECOACH_NETWORK_ZOO_PAIR_INPUTS_H_
#define STAGECOACH_NETWORK_ZOO_PAIR_INPUTS_H_

#include <cstdint>

#include "network/network_builder.h"

namespace stagecoach {

// "source", ids [source_context]; "source_length", an id, the number of source tokens, at least 1;
// "tokens", ids [target_context], the decoder's input; "targets", the same shifted by one. Both
// contexts are named lengths (base/numbers/lengths.h): a mini-batch may be shorter.
struct PairInputs {
  WireId source, source_length, tokens, targets;
};
PairInputs AddPairInputs(int64_t vocabulary, int64_t source_context, int64_t target_context,
                         NetworkBuilder* builder);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_PAIR_INPUTS_H_
