#include "decoding/log_softmax.h"

#include <algorithm>
#include <cmath>

#include "decoding/row_loops.h"

namespace stagecoach {

LogSoftmax::LogSoftmax(std::span<const float> logits)
    : LogSoftmax(logits, GreatestOfLanes(logits)) {}

LogSoftmax::LogSoftmax(std::span<const float> logits, const RowLanes& greatest)
    : logits_(logits),
      greatest_(*std::max_element(greatest.begin(), greatest.end())),
      log_sum_(std::log(SumOfExponentials(logits, greatest_))) {}

}  // namespace stagecoach
