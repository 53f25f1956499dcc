// A chain of layers as a job lists them, each reading the output of the one before. The zoo writes
// networks of known layers with it.
// Errors: INVALID_ARGUMENT with the layer's path in the job.
#ifndef STAGECOACH_NETWORK_ZOO_LAYER_CHAIN_H_
#define STAGECOACH_NETWORK_ZOO_LAYER_CHAIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "network/layer_spec.h"
#include "network/network.h"

namespace stagecoach {

// Input and output of a network on text, in the ranges of network/limits.h.
struct TokenShape {
  int64_t width = 0;       // of the embedding's output
  int64_t context = 0;     // tokens of one sequence
  int64_t vocabulary = 0;  // token ids, and logits of the last layer
  bool tied =
      false;  // the last layer, a linear one, uses the first's token embedding as its weight
  // Attention stays within documents, whose first rows are a third input.
  bool documents = false;
};

// Inputs "tokens", "targets" and, with `documents`, "document_starts", ids [context]; cross-entropy
// of the last layer's logits [context, vocabulary]. `path`: of the network in the job, whose field
// tied_embeddings sets `tied`.
absl::StatusOr<Network> ChainOnTokens(const TokenShape& shape, const std::vector<LayerSpec>& layers,
                                      const std::string& path);

// Input and output of a network on pairs of sequences, in the ranges of network/limits.h.
struct PairShape {
  int64_t width = 0;       // of both embeddings' outputs
  int64_t vocabulary = 0;  // token ids of both sides, and logits of the last layer
  int64_t source_context = 0, target_context = 0;
  bool tied = false;  // as TokenShape's; the source's token embedding is the same matrix
};

// Inputs as network/zoo/pair_inputs.h; cross-entropy of the last decoder layer's logits
// [target_context, vocabulary]. Cross attentions of the decoder read the last encoder layer's
// output. The encoder's attention, without a causal mask, and the cross attentions do not attend to
// padding. No other layer may make a row of others.
absl::StatusOr<Network> ChainOnPairs(const PairShape& shape, const std::vector<LayerSpec>& encoder,
                                     const std::vector<LayerSpec>& decoder,
                                     const std::string& path);

// Input and output of a network on images.
struct ImageShape {
  std::vector<int64_t> image;  // height, width, channels
  int64_t classes = 0;         // logits of the last layer
};
// Checks both; `path` as below.
absl::Status CheckImageShape(const ImageShape& shape, const std::string& path);

// Inputs "images", activation [height, width, channels], and "labels", an id a sample;
// cross-entropy of the last layer's logits [classes]. The shape was checked.
absl::StatusOr<Network> ChainOnImages(const ImageShape& shape, const std::vector<LayerSpec>& layers,
                                      const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_LAYER_CHAIN_H_
