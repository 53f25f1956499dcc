#include "decoding/continuation.h"

#include <algorithm>
#include <utility>

#include "base/errors/check.h"

namespace stagecoach {

Continuation::Continuation(std::vector<int32_t> stops, int64_t most_tokens)
    : stops_(std::move(stops)), most_tokens_(most_tokens) {
  CHECK(most_tokens >= 1) << most_tokens;
}

bool Continuation::Add(const Candidate& chosen) {
  CHECK(!ended_ && std::ssize(tokens_) < most_tokens_)
      << "token " << chosen.token << " after the last one";
  sum_ += chosen.log_probability;
  ended_ = std::find(stops_.begin(), stops_.end(), chosen.token) != stops_.end();
  if (ended_) return false;
  tokens_.push_back(chosen.token);
  return std::ssize(tokens_) < most_tokens_;
}

}  // namespace stagecoach
