// LogSoftmax: the logarithm of the softmax of a row of logits.
// Ownership: borrows the row.
// Threads:   pure.
// Units and shapes: natural logarithms; the error is at most 1e-6 + 1e-7 * |value|. Exponentials are
//            float32, their sum is float64.
// Errors:    none. The caller checks that the row is finite and not empty.
#ifndef STAGECOACH_DECODING_LOG_SOFTMAX_H_
#define STAGECOACH_DECODING_LOG_SOFTMAX_H_

#include <cstdint>
#include <span>

#include "decoding/row_loops.h"

namespace stagecoach {

class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits);
  // greatest: GreatestOfLanes(logits).
  LogSoftmax(std::span<const float> logits, const RowLanes& greatest);

  float Of(int32_t token) const {
    return static_cast<float>(static_cast<double>(logits_[token]) - greatest_ - log_sum_);
  }

 private:
  std::span<const float> logits_;
  float greatest_;
  double log_sum_;  // of exp(logit - greatest); apart, as a large logit would swallow it
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_LOG_SOFTMAX_H_
