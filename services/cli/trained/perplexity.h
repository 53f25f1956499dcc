// Perplexity: how well a trained network predicts a text.
// The text is cut into windows of the network's context, as a job's evaluation cuts it. A token is
// predicted from the tokens before it in its window.
// Threads: one thread.
// Units:   nats; bytes of the text as it is in the file.
// Errors:  INVALID_ARGUMENT: too short, not UTF-8, or a byte beyond the vocabulary.
//          FAILED_PRECONDITION: logits are not finite.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_PERPLEXITY_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_PERPLEXITY_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/cli/trained/decoding_network.h"

namespace stagecoach {

struct TextLoss {
  int64_t tokens = 0;  // that were predicted: all but the first
  int64_t bytes = 0;
  double sum = 0;  // of negative log probabilities

  double loss() const { return sum / static_cast<double>(tokens); }
  double perplexity() const;
  double bits_per_byte() const;
};

// `goes_on`: called after each batch of windows; false ends.
absl::StatusOr<TextLoss> LossOfText(const DecodingNetwork& network, std::string_view text,
                                    const std::function<bool()>& goes_on);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_PERPLEXITY_H_
