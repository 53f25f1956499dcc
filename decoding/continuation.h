// Continuation: one prompt that is continued token by token, greedily or sampled.
// Threads: one at a time.
// Errors:  CHECKs that a continuation that is over receives no token.
#ifndef STAGECOACH_DECODING_CONTINUATION_H_
#define STAGECOACH_DECODING_CONTINUATION_H_

#include <cstdint>
#include <vector>

#include "decoding/choice.h"

namespace stagecoach {

class Continuation {
 public:
  // stops: tokens that end the text; most_tokens: at least 1, without the stop.
  Continuation(std::vector<int32_t> stops, int64_t most_tokens);

  // Returns whether the text goes on: no stop, and room for another token.
  bool Add(const Candidate& chosen);

  const std::vector<int32_t>& tokens() const { return tokens_; }  // without prompt and stop
  bool ended() const { return ended_; }                           // by a stop
  double sum() const { return sum_; }  // of log probabilities, that of the stop included

 private:
  std::vector<int32_t> stops_;
  int64_t most_tokens_;
  std::vector<int32_t> tokens_;
  double sum_ = 0;
  bool ended_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_CONTINUATION_H_
