#include "operations/attention/attention_keys.h"

#include <utility>

#include "operations/type_check.h"

namespace stagecoach {

absl::Status CheckAttentionKeys(const ValueType& keys, Shape shape) {
  return CheckType("keys", keys, {Element::kIds, Leading::kSamples, std::move(shape)});
}

Cost AttentionCost(int64_t scores, int64_t heads, int64_t head_width, const ScoreFlops& flops,
                   int64_t samples) {
  const int64_t forward = 4 * scores * heads * head_width;
  Cost cost;
  cost.products = static_cast<int64_t>(flops.products * static_cast<double>(forward)) * samples;
  cost.flops = cost.products + (flops.softmax + flops.dropout) * heads * scores * samples;
  return cost;
}

}  // namespace stagecoach
