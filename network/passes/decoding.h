// Decoding: the same network in the form in which it writes text token by token. It is two networks:
// `source` computes once what no token reaches, as an encoder and the keys of its output; `target`
// computes new rows. A row is one token of one hypothesis. Keys and values of earlier rows are in a
// pool of rows, a state of each attention (operations/attention/cached_attention.h).
// Both have the layers of the whole network, so that a partition cuts them at the same places. Each
// parameter is tied to the network's own of that name.
// A text is one document: where a network keeps documents apart, the form does not read where they
// begin.
// Ownership: plain values.  Threads: pure.
// Units:     rows of a micro-batch are samples times the length kTarget.
// Errors:    INVALID_ARGUMENT: a call mixes rows (names layer and operation); no tokens are read; the
//            output does not depend on them; pool_rows is below 1.
#ifndef STAGECOACH_NETWORK_PASSES_DECODING_H_
#define STAGECOACH_NETWORK_PASSES_DECODING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"

namespace stagecoach {

struct DecodingForm {
  // Its inputs are those of the network that no token reaches. It has no objective.
  Network source;
  // Its inputs: ids [rows] "tokens", "positions" in [0, context), "places" (of its keys in the pool;
  // -1: none), ids [rows, context] "history" (places of positions 0 to its own). Held values follow.
  // The objective has the logits as its output, and no targets.
  Network target;
  // Values that the source makes and the target reads. Each belongs to one layer.
  struct Held {
    int layer = 0;
    WireId made;  // an output of the source's layer
    WireId read;  // an input of the target
  };
  std::vector<Held> held;  // ascending by layer
  int64_t context = 0;     // positions that a text may have
  int64_t pool = 0;        // rows
  bool has_source() const { return !source.inputs.empty(); }
};

inline constexpr const char *kTokens = "tokens", *kPositions = "positions", *kPlaces = "places",
                            *kHistory = "history";

absl::StatusOr<DecodingForm> DecodingOf(const Network& network, int64_t pool_rows);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_DECODING_H_
