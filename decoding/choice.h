// Choice: the tokens that a row of logits proposes, likeliest first or sampled.
// Threads: pure functions. The rows of a batch may go to any threads.
// Units and shapes: a row has a logit for each token of the vocabulary. Log probabilities are those
//          of the whole row's softmax, forbidden tokens included (decoding/log_softmax.h). Of two
//          equal logits, the lower token comes first.
// Errors:  FAILED_PRECONDITION if a logit is not finite; names the first such token. CHECKs
//          options, and that a token is left to sample.
// See:     Sample keeps the tokens that the logits processors of Hugging Face's transformers keep,
//          in their order. One difference: those keep all logits that equal the last of top_k.
#ifndef STAGECOACH_DECODING_CHOICE_H_
#define STAGECOACH_DECODING_CHOICE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

struct Candidate {
  int32_t token = 0;
  float log_probability = 0;

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct ChoiceOptions {
  int candidates = 1;      // the likeliest tokens, unless one is sampled
  bool sample = false;     // one token by chance; the fields below belong to it
  double temperature = 1;  // divides the logits; 0: the likeliest token
  int64_t top_k = 0;       // likeliest tokens that are kept; 0: all
  double top_p = 1;  // of those: the fewest likeliest with at least this share of their probability
};

// FAILED_PRECONDITION naming the first logit that is not finite.
absl::Status CheckFinite(std::span<const float> logits);

// The `count` likeliest tokens, or all if there are fewer. A forbidden token never comes.
absl::StatusOr<std::vector<Candidate>> Likeliest(std::span<const float> logits, int count,
                                                 std::span<const int32_t> forbidden);

// One token of softmax(logits / temperature), cut to top_k and then to top_p. The kept tokens
// divide [0, 1) by their probabilities, likeliest first; `uniform` falls on one of them.
absl::StatusOr<Candidate> Sample(std::span<const float> logits, const ChoiceOptions& options,
                                 double uniform, std::span<const int32_t> forbidden);

// The likeliest tokens, or one sampled token, by the options.
absl::StatusOr<std::vector<Candidate>> Choose(std::span<const float> logits,
                                              const ChoiceOptions& options, double uniform,
                                              std::span<const int32_t> forbidden);

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_CHOICE_H_
